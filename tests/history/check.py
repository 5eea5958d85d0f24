#!/usr/bin/python3 -IS
"""check.py - does a history keep what a lock promises?

    check.py FILE             print what is wrong; exit status 1 if anything is
    check.py --stories FILE...    hand-made histories, right ones and wrong ones

README.md has the language of a history and the properties.
"""
import sys
from bisect import bisect_left, bisect_right

OK, UNKNOWN = "ok", ("uncertain", "unreachable")
LOSSES = ("lost", "expired")
NEVER = float("inf")
RIGHT = "nothing"


class Line:
    """One operation: who did what to which lock, from when to when."""

    def __init__(self, number, text):
        words = text.split()
        if len(words) < 5:
            sys.exit(
                'line %d: expected WHO VERB LOCK FROM TO, not "%s"' % (number, text)
            )
        self.number, self.text = number, text
        self.who, self.verb, self.lock = words[:3]
        self.process = self.who.split(".")[0]
        self.begun = float(words[3])
        self.ended = NEVER if words[4] == "-" else float(words[4])
        self.last = self.begun if self.ended == NEVER else self.ended
        self.more = dict(word.split("=", 1) for word in words[5:])
        default = "uncertain" if self.ended == NEVER else OK
        self.rc = self.more.get("rc", default)
        self.until = float(self.more.get("until", 0))
        self.token = int(self.more.get("token", 0))
        self.weight = int(self.more.get("weight", 0))  # 0: alone
        self.wait = float(self.more.get("wait", 0))
        self.hold = None  # of an acquire that was granted

    def has_begun(self, verb):
        return self.verb == verb and self.rc == OK


class Hold:
    """A lease from its grant to its last operation."""

    def __init__(self, grant):
        self.who, self.grant, self.lines = grant.who, grant, [grant]
        self.until = grant.until  # as it was believed at last
        self.since = grant.begun  # when that was asked for
        self.released = None  # the release, or what else ended it
        self.told = None
        self.after = None  # the first grant by which it was over for sure
        self.died = NEVER
        self.wrote = 0.0  # when its last guarded write was over

    def ended(self):
        """When it was given up, or its holder died."""
        return self.released.begun if self.released else self.died

    def blocks_until(self, lease, crashes):
        """How long others may be refused.  One that was not given back for
        certain, by one that lives, is renewed for as long as it likes; a
        server's crash may forget that it was given back."""
        if (
            self.released
            and self.released.rc == OK
            and not any(
                line.begun <= self.released.ended and self.released.begun < line.ended
                for line in crashes
            )
        ):
            return self.released.ended
        last = max(line.last for line in self.lines)
        lives = self.died if not self.released else 0.0
        return max(self.until, last, self.wrote, lives) + lease

    def is_shared_at(self, begun):
        """Whether it had let others in for sure."""
        return self.grant.weight or any(
            line.has_begun("downgrade") and line.ended < begun for line in self.lines
        )


class Belief:
    """A stretch in which one believed that it had the lock."""

    def __init__(self, hold, line, begun):
        self.hold, self.line, self.begun = hold, line, begun
        self.until, self.weight = line.until, line.weight


class History:
    def __init__(self, lines):
        self.wrong = []  # of each: a property, a text and the lines
        self.limits, self.permits = {}, {}
        self.lines, self.stops, self.outages, self.deaths = [], [], [], {}
        self.crashes = []
        self.harms = []  # deaths, crashes and leases that were broken
        for number, text in lines:
            self.read(number, text)
        self.lines.sort(key=lambda line: line.moment)
        self.over = max(
            (
                t
                for line in self.lines
                for t in (line.begun, line.ended)
                if t != NEVER and line.verb != "break"  # which may last
            ),
            default=0.0,
        )
        self.locks, self.holds = {}, {}
        for line in self.lines:
            self.locks.setdefault(line.lock, []).append(line)

    def read(self, number, text):
        words = text.split()
        if words[0] == "limit":
            for word in words[1:]:
                name, value = word.split("=")
                self.limits[name] = float(value)
        elif words[0] == "permits":
            self.permits[words[1]] = int(words[2])
        else:
            line = Line(number, text)
            # What is given up is so before the call, all else after it.
            line.moment = line.begun
            if line.verb in ("acquire", "renew", "observe"):
                line.moment = line.ended
            if line.verb == "acquire" and line.rc in LOSSES:
                line.moment = line.begun  # its loss is told meanwhile
            if line.verb in ("died", "crashed", "break"):
                self.harms.append(line)
            if line.verb == "stopped":
                self.stops.append(line)
            elif line.verb == "away":
                self.outages.append(line)
            elif line.verb == "crashed":
                self.crashes.append(line)
            elif line.verb == "died":
                self.deaths[line.who] = line.begun
            else:
                self.lines.append(line)

    def refuse(self, name, text, *lines):
        told = [text] + ["line %d: %s" % (at.number, at.text) for at in lines]
        self.wrong.append((name, "; ".join(told), lines))

    def was_stopped(self, who, begun, ended):
        return self.is_among(self.stops, who, begun, ended)

    @staticmethod
    def is_among(lines, who, begun, ended):
        return any(
            line.who == who.split(".")[0] and line.begun < ended and line.ended > begun
            for line in lines
        )

    def death(self, line):
        return self.deaths.get(line.process, NEVER)

    # ------------------------------------------------ leases and beliefs

    def hold_of(self, lines):
        """Tell which lease each line is about; say where there is none."""
        holds, now = [], {}
        for line in lines:
            hold = now.get(line.who)
            if line.has_begun("acquire"):
                if hold and not hold.released:
                    self.refuse("outcome", "granted while having it", line)
                hold = now[line.who] = line.hold = Hold(line)
                hold.died = self.death(line)
                holds.append(hold)
            elif line.verb == "acquire" and line.rc in LOSSES:
                hold = now[line.who] = Hold(line)  # over before it was answered
                hold.released = line
            elif line.verb == "write" and hold and "fenced" not in line.more:
                hold.wrote = max(hold.wrote, min(line.ended, self.death(line)))
            elif line.verb == "told":
                if not hold and not self.is_acquiring(line, lines):
                    self.refuse("outcome", "told without having it", line)
                elif hold and not hold.told:
                    hold.told = line
            elif line.verb in ("renew", "release", "gone", "downgrade"):
                if hold and not hold.released:
                    hold.lines.append(line)
                    if line.verb in ("release", "gone"):
                        hold.released = line
                    elif line.rc == OK:
                        hold.until, hold.since = line.until, line.begun
                elif line.rc == OK:
                    self.refuse("outcome", line.verb + " without having it", line)
        ends = [hold.grant.ended for hold in holds]  # in order, as the lines are
        for hold in holds:
            others = holds[bisect_right(ends, hold.grant.ended) :]
            hold.after = next(
                (o.grant for o in others if self.excludes(o.grant, hold, holds)), None
            )
        return holds

    @staticmethod
    def is_acquiring(told, lines):
        """Whether its owner may have been granted what it has not fetched."""
        return any(
            line.verb == "acquire"
            and line.who == told.who
            and line.begun <= told.begun < line.ended
            for line in lines
        )

    def excludes(self, grant, hold, holds):
        """Whether that lease was over for sure when another was granted."""
        if not grant.weight:
            return True
        if not hold.grant.weight:  # a reader may come when it has become one
            return not any(
                line.verb in ("downgrade", "gone") and line.begun < grant.ended
                for line in hold.lines
            )
        most = self.permits.get(grant.lock, NEVER)
        return most < NEVER and most < hold.grant.weight + sum(
            other.grant.weight
            for other in holds
            if other is not hold
            and other.grant.ended <= grant.ended < min(other.until, other.ended())
        )

    @staticmethod
    def beliefs_of(hold):
        """What was believed, until the next line changed it.  A downgrade
        counts from when it was asked for: there must be no gap."""
        beliefs = []
        for line in hold.lines:
            if line.rc != OK and line.verb in ("renew", "downgrade"):
                if line.rc in LOSSES and beliefs:
                    beliefs[-1].until = min(beliefs[-1].until, line.ended)
                continue
            if beliefs:
                begun = line.begun if line.verb == "downgrade" else line.moment
                beliefs[-1].until = min(beliefs[-1].until, begun)
            if line.verb in ("release", "gone"):
                break
            begun = line.begun if line.verb == "downgrade" else line.ended
            beliefs.append(Belief(hold, line, begun))
            if line.verb == "renew" and len(beliefs) > 1:
                beliefs[-1].weight = beliefs[-2].weight
        for belief in beliefs:
            belief.until = min(belief.until, hold.died)
        return beliefs

    # ------------------------------------------------------- properties

    def check_exclusion(self, lock, holds):
        """exclusion, permits, downgrade"""
        beliefs = [b for hold in holds for b in self.beliefs_of(hold)]
        beliefs.sort(key=lambda belief: belief.begun)
        most, inside = self.permits.get(lock, NEVER), []
        for one in beliefs:
            if one.until <= one.begun:
                continue
            inside = [b for b in inside if b.until > one.begun]
            for other in inside:
                if other.hold.who == one.hold.who or (one.weight and other.weight):
                    continue
                gap = other.line.verb == "downgrade" and (one.begun < other.line.ended)
                self.refuse(
                    "downgrade" if gap else "exclusion",
                    "two believed at one time, for %.3f ms"
                    % (min(one.until, other.until) - one.begun),
                    other.line,
                    one.line,
                )
            inside.append(one)
            taken = sum(b.weight for b in inside)
            if taken > most:
                self.refuse(
                    "permits",
                    "%d permits of %d" % (taken, most),
                    *[b.line for b in inside]
                )

    def check_tokens(self, holds):
        """A grant that was answered before another was asked for has the
        smaller token, and no two have one, but readers of one process."""
        grants = sorted(
            (hold.grant for hold in holds if "token" in hold.grant.more),
            key=lambda line: line.ended,
        )
        greatest, ends = [], [line.ended for line in grants]
        for line in grants:
            best = greatest[-1] if greatest else line
            greatest.append(line if line.token >= best.token else best)
        first = {}
        for line in sorted(grants, key=lambda line: line.begun):
            first.setdefault(line.token, line)
        for line in grants:
            before = bisect_left(ends, line.begun)
            other = first[line.token]
            if other is not line and line.weight and (other.process == line.process):
                continue
            if before and greatest[before - 1].token >= line.token:
                self.refuse(
                    "tokens",
                    "the token did not rise",
                    greatest[before - 1],
                    line,
                )
            elif other is not line:
                self.refuse("tokens", "a token came twice", other, line)

    def is_untold(self, hold, after):
        """Whether its holder was let believe in it when another had it."""
        return (
            after.who != hold.who
            and after.ended < min(hold.ended(), self.over)
            and not self.was_stopped(hold.who, hold.grant.begun, after.ended)
            and not any(
                line.begun <= after.ended
                for line in hold.lines + [hold.told]
                if line and (line is hold.told or line.rc in LOSSES)
            )
        )

    def check_told(self, lines, holds):
        for hold in holds:
            told, after = hold.told, hold.after
            if (
                told
                and after
                and after.ended < told.begun
                and after.who != hold.who
                and not self.was_stopped(hold.who, hold.since, told.begun)
            ):
                self.refuse("told", "told after another was granted", after, told)
            if "watched" in hold.grant.more and after and self.is_untold(hold, after):
                self.refuse("told", "another was granted, untold", hold.grant, after)
            if told and told.rc in LOSSES and self.is_for_nothing(hold, told, lines):
                self.refuse("told", "lost, but nobody else came", hold.grant, told)
            due = hold.until + self.limits.get("told", NEVER)
            end = min(hold.ended(), told.begun if told else NEVER, self.over)
            if (
                "watched" in hold.grant.more
                and "renewed" not in hold.grant.more
                and end > due
                and (not self.was_stopped(hold.who, hold.until, end))
            ):
                self.refuse(
                    "told",
                    "the loss was not told in time",
                    hold.lines[-1],
                    *([told] if told else [])
                )

    def check_ends(self, lines, holds):
        """outcome and release: what is said of a lease is true."""
        for hold in holds:
            after = hold.after
            for line in hold.lines[1:]:
                name = "release" if line.verb == "release" else "outcome"
                if (
                    line.rc == OK
                    and line.verb != "gone"
                    and after
                    and (after.ended < line.begun)
                ):
                    self.refuse(name, line.verb + " of another's lease", after, line)
                if line.rc in LOSSES and self.is_for_nothing(hold, line, lines):
                    self.refuse(
                        name,
                        "lost, but nobody else came and the " "lease lasted",
                        hold.grant,
                        line,
                    )

    def is_for_nothing(self, hold, line, lines):
        """Whether that line tells of a loss while the lease lasts, and no other
        can have had the lock, nor a failure of the holder's own have cost it."""
        return (
            line.ended < hold.until
            and "token" in hold.grant.more  # not of a quorum
            and not any(other.rc in UNKNOWN for other in hold.lines)
            and not any(
                other.who != hold.who
                and other.begun < line.ended
                and other.ended > hold.grant.begun
                and self.could_end(hold, other)
                for other in lines
            )
        )

    def could_end(self, hold, other):
        if other.verb == "break" or other.verb == "acquire" and other.rc in UNKNOWN:
            return other.rc in (OK,) + UNKNOWN
        return (
            other.has_begun("acquire")
            and other.token > hold.grant.token
            and not (
                hold.is_shared_at(other.begun)
                and other.weight
                and other.lock not in self.permits
            )
        )

    def asks_until(self, other, line):
        """How long that acquisition, which was not granted, may have kept the
        lock from the one that was refused.  A grant that came too late is given
        back in the background."""
        lease = self.limits.get("lease", NEVER)
        if other.rc in UNKNOWN + LOSSES:
            died = self.death(other) if other.ended == NEVER else NEVER
            last = other.last if died == NEVER else died
            return max(other.begun + other.wait, last) + lease
        if other.rc == OK or not (other.wait or "part" in other.more):
            return other.ended  # a try locks the row, but has no ticket
        return other.ended + self.limits.get("reserved", 0.0)

    def is_refusal(self, line):
        """Whether it says that others had the lock.  Where a call lasts, the
        database may have been slow, or its file locked."""
        if line.verb != "acquire" or "part" in line.more:
            return False  # or another lock of the call was taken
        if line.rc == "busy":
            slow = self.limits.get("slow", NEVER)
            return line.ended - line.begun < line.wait + slow
        return line.rc == "timedout" and line.wait >= self.limits.get("lease", 0.0)

    def check_busy(self, lines, holds):
        """outcome: who is told that a lock is taken was told the truth."""
        lease = self.limits.get("lease", NEVER)
        asked = [line for line in lines if line.verb in ("acquire", "break")]
        left = [
            line.begun
            for line in asked
            if line.verb == "acquire" and line.wait and line.rc != OK
        ]
        kept = []  # each hold, and how long it may be in the way
        for hold in holds:
            until = hold.blocks_until(lease, self.crashes)
            if hold.released and min(left, default=NEVER) < until:
                until += self.limits.get("reserved", 0.0)
            kept.append((hold, until))
        for line in asked:
            if not self.is_refusal(line):
                continue
            there = [
                hold
                for hold, until in kept
                if hold.grant.begun < line.ended and until > line.begun
            ]
            if line.weight:
                taken = any(not hold.is_shared_at(line.begun) for hold in there)
                out = sum(hold.grant.weight for hold in there)
                taken = taken or out + line.weight > self.permits.get(line.lock, NEVER)
            else:
                taken = bool(there)
            if not taken and not any(
                other is not line
                and other.begun < line.ended
                and (
                    other.ended
                    if other.verb == "break"
                    else self.asks_until(other, line)
                )
                > line.begun
                for other in asked
            ):
                self.refuse("outcome", "busy, but nobody had it", line)

    def check_wait(self, lines):
        slack = self.limits.get("wait", NEVER)
        for line in lines:
            lasted = line.ended - line.begun
            if line.verb != "acquire" or "wait" not in line.more:
                continue
            if line.rc == "timedout" and lasted < line.wait - 1:
                self.refuse("wait", "the wait ended early", line)
            if (
                lasted != NEVER
                and lasted > line.wait + slack
                and (not self.was_stopped(line.who, line.begun, line.ended))
            ):
                self.refuse("wait", "the wait lasted too long", line)

    def check_order(self, lines):
        """Nobody alive is passed by one that came when its ticket was seen."""
        asked = [line for line in lines if line.verb == "acquire"]
        for first in asked:
            seen = float(first.more.get("queued", NEVER))
            if seen == NEVER:
                continue
            for other in asked:
                if (
                    other.process != first.process
                    and other.rc == OK
                    and other.begun > seen
                    and other.ended < first.ended
                    and other.ended < self.death(first)
                    and first.rc in (OK, "timedout")
                    and not self.may_pass(first, other, lines)
                ):
                    self.refuse("order", "a later one passed", first, other)

    def may_pass(self, first, other, lines):
        """Whether the first could not answer when it was its turn, or had no
        time left; or there is another owner of its process, with which it has
        one ticket, or of the other's, which may hand the lock on; or there is
        room for both at one time, or the other is a reader, who joins those of
        its process."""
        until = other.ended
        return (
            until > first.begun + first.wait
            or self.was_stopped(first.who, first.begun, until)
            or self.is_among(self.outages, first.who, first.begun, until)
            or other.weight
            and first.weight + other.weight <= self.permits.get(other.lock, NEVER)
            or any(
                line.begun < until
                and (
                    line.ended > first.begun
                    and (line.verb == "break" or self.is_beside(first, line))
                    or line.ended > other.begun
                    and self.is_beside(other, line)
                )
                for line in lines
            )
        )

    @staticmethod
    def is_beside(one, line):
        return line.process == one.process and line.who != one.who

    def check_leader(self, lines, holds):
        published = [line for line in lines if line.verb == "publish"]
        breaks = [line for line in lines if line.verb == "break"]
        for line in lines:
            if line.verb != "observe" or "text" not in line.more:
                continue
            text = line.more["text"]
            known = [
                p
                for p in published
                if p.more["text"] == text
                and p.begun < line.ended
                and (p.rc in (OK,) + UNKNOWN or line.begun < self.lasts_until(p))
            ]
            if not known:
                self.refuse("leader", "a text that nobody published", line)
                continue
            # What was done before may be forgotten by the server that is asked.
            forgot = [b for b in breaks if b.begun < line.ended]
            for later in published:
                if (
                    later.rc == OK
                    and later.ended < line.begun
                    and all(p.ended < later.begun for p in known)
                    and not any(later.begun < b.ended for b in forgot)
                ):
                    self.refuse("leader", "an older text", later, line)
            token = max(self.token_of(p, holds) for p in known)
            for hold in holds:
                if (
                    hold.grant.ended < line.begun
                    and token < hold.grant.token
                    and not any(hold.grant.begun < b.ended for b in forgot)
                ):
                    self.refuse(
                        "leader",
                        "the text of a former leader",
                        hold.grant,
                        line,
                    )

    def lasts_until(self, published):
        """How long a text may be read whose leader was told that it leads no
        more: one whose own time was over may have published it before."""
        if published.rc == "expired":
            return published.ended + self.limits.get("lease", NEVER)
        return published.ended if published.rc in LOSSES else 0.0

    @staticmethod
    def token_of(line, holds):
        """The token of the lease that its owner had then."""
        return max(
            (
                hold.grant.token
                for hold in holds
                if hold.who == line.who and hold.grant.ended <= line.begun
            ),
            default=0,
        )

    def check_guard(self, lines, holds):
        writes = [line for line in lines if line.verb == "write"]
        stored = {line.more["write"]: line for line in lines if line.verb == "stored"}
        is_told = "written" in self.limits
        for line in writes:
            number = line.more.get("write")
            if line.rc == OK and is_told and number not in stored:
                self.refuse("guard", "an acknowledged write is gone", line)
            if line.rc not in (OK,) + UNKNOWN and number in stored:
                self.refuse("guard", "a refused write is there", line)
            for hold in holds:
                if (
                    line.rc == OK
                    and "fenced" not in line.more  # until a later one writes
                    and not hold.grant.weight
                    and (
                        hold.grant.token > line.token and hold.grant.ended < line.begun
                    )
                ):
                    self.refuse(
                        "guard",
                        "a write after a later grant",
                        hold.grant,
                        line,
                    )
        last = None
        for line in sorted(stored.values(), key=lambda line: int(line.more["write"])):
            if last and line.token < last.token:
                self.refuse("guard", "an older token wrote later", last, line)
            last = line

    def check_stock(self, lines):
        orders = {}
        for line in lines:
            if line.verb == "sell":
                name = line.more.get("order", str(line.number))
                orders.setdefault(name, []).append(line)
        sold, maybe = 0, 0
        for sales in orders.values():
            count = int(sales[0].more["n"])
            if any(line.rc == OK for line in sales):
                sold += count
            elif any(line.rc in UNKNOWN for line in sales):
                maybe += count
        for line in lines:
            if line.verb == "left":
                gone = int(line.more["began"]) - int(line.more["n"])
                if int(line.more["n"]) < 0 or not (sold <= gone <= sold + maybe):
                    self.refuse(
                        "stock",
                        "%d are gone, %d to %d were sold" % (gone, sold, sold + maybe),
                        line,
                    )

    def check_once(self, lines):
        runs = [line for line in lines if line.verb == "run"]
        done = [line for line in runs if line.rc == OK]
        for one, other in zip(done, done[1:]):
            self.refuse("once", "it was done twice", one, other)
        for line in runs:
            if line.rc == "done" and not any(
                other.rc in (OK,) + UNKNOWN and other.begun < line.ended
                for other in runs
            ):
                self.refuse("once", "done, but nobody did it", line)

    def check_left(self, lines):
        for line in lines:
            if line.verb == "row" and any(
                line.more.get(name, "0") != "0"
                for name in ("held", "tickets", "shares", "rows")
            ):
                self.refuse("left", "something is left behind", line)

    def check(self):
        for lock, lines in self.locks.items():
            holds = self.holds[lock] = self.hold_of(lines)
            self.check_exclusion(lock, holds)
            self.check_tokens(holds)
            self.check_told(lines, holds)
            self.check_ends(lines, holds)
            self.check_busy(lines, holds)
            self.check_wait(lines)
            self.check_order(lines)
            self.check_leader(lines, holds)
            self.check_guard(lines, holds)
            self.check_stock(lines)
            self.check_once(lines)
            self.check_left(lines)
        return self.wrong


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            text = text.split("#")[0].strip()
            if text:
                yield number, text


def check_stories(paths):
    """Print for each story whether it was judged as its title says: one that
    is wrong must break the property that its file is named for, and no
    other."""
    is_good = True
    for path in paths:
        name = path.split("/")[-1].split(".")[0]
        stories = []
        for number, text in lines_of(path):
            if text.startswith("=="):
                stories.append((text[2:].strip(), []))
            else:
                stories[-1][1].append((number, text))
        for title, lines in stories:
            wrong = {found for found, _, _ in History(lines).check()}
            expected = {name} if title.startswith("wrong") else set()
            good = wrong == expected
            is_good = is_good and good
            print("%sok - %s: %s" % ("" if good else "not ", name, title))
            if not good:
                print("# found: %s" % (", ".join(sorted(wrong)) or RIGHT))
    return is_good


def main(arguments):
    if arguments[:1] == ["--stories"]:
        return 0 if check_stories(arguments[1:]) else 1
    if len(arguments) != 1:
        sys.exit(__doc__)
    wrong = History(list(lines_of(arguments[0]))).check()
    for name, text, _ in wrong[:20]:
        print("%s: %s" % (name, text))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
