#!/usr/bin/env python3
"""An actor of scenes that uses the Python package: see tests/scenes/README.md.

It reads a call a line from standard input, makes it in the thread with that
number, and tells when the call begins and ends.  A scene with a verb or option
that the package has no call for is skipped.
"""

import os
import queue
import sys
import threading
import time

import sqlock

NOT_PLAYED = -1000
LONG = 60.0
OPENS = {
    "prefix": ("table_prefix", str),
    "ttl": ("ttl", lambda text: int(text) / 1000),
    "margin": ("margin", lambda text: int(text) / 1000),
    "poll": ("poll", lambda text: int(text) / 1000),
    "pool": ("pool_size", int),
    "period": ("renew_period", lambda text: int(text) / 1000),
    "statement": ("statement_timeout", lambda text: int(text) / 1000),
    "connect": ("connect_timeout", lambda text: int(text) / 1000),
    "waiting": ("waiting", str),
}
TAKES = "wait ttl renewed hasty fenced hold told many shared permits weight".split()
# A registry of the package owns by handle, which is one thread's here.
IGNORED = {"url", "folder", "through", "within", "says", "soon", "now"}


class Refused(Exception):
    """The package has no such call."""


class Step:
    """A step's words: VERB [NAME] [option=value]..."""

    def __init__(self, words):
        self.verb, self.names, self.options = words[0], [], {}
        for word in words[1:]:
            if not self.names and word[0].isupper():
                self.names = [one for part in word.split(",") for one in several(part)]
            else:
                option, _, value = word.partition("=")
                self.options[option] = value

    def only(self, *known):
        """Refuse options that are not known."""
        odd = set(self.options) - set(known) - IGNORED
        if odd:
            raise Refused(f"no such option: {odd.pop()}")

    def has(self, option):
        return option in self.options

    def seconds(self, option, otherwise):
        value = self.options.get(option)
        if value is None:
            return otherwise
        return None if value == "ever" else int(value) / 1000

    def number(self, option, otherwise):
        return int(self.options.get(option, otherwise))


def several(name):
    """The names of "L*3": L1, L2 and L3."""
    base, star, rest = name.partition("*")
    if not star:
        return [name]
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return [f"{base}{i}{rest[len(digits):]}" for i in range(1, int(digits) + 1)]


def say(line):
    """In one write, so that lines come in the order of what they tell."""
    os.write(1, (line + "\n").encode())


class Actor:
    def __init__(self):
        self.registry = None
        self.folder = ""

    def opens(self, player, step):
        step.only(*OPENS, "patient", "owner", "services")
        if step.options.get("owner", "handle") != "handle":
            raise Refused("leases of the package are owned by handles")
        options = {
            name: convert(step.options[option])
            for option, (name, convert) in OPENS.items()
            if option in step.options
        }
        options.setdefault("ttl", LONG)
        options.setdefault("poll", 0.005)
        options["peer_ttl"] = 0.4
        options["no_peers"] = not step.has("services")
        if step.has("patient"):
            options["poll"] = 3600.0
        self.folder = step.options["folder"]
        until = time.monotonic() + 30
        while True:
            try:
                self.registry = sqlock.open(step.options["url"], **options)
                return 0
            except sqlock.Unreachable:
                if time.monotonic() > until:
                    raise

    def closes(self, player, step):
        if self.registry is not None:
            self.registry.close()
        return 0

    def _told(self, lease, error):
        say(f"lost {error.code} {lease.name}")

    def _take(self, player, step):
        step.only(*TAKES)
        if any(name in player.leases for name in step.names):
            raise Refused("a lease of the package is not counted")
        if step.options.get("told"):
            raise Refused("on_lost has a thread of its own")
        options = {
            "ttl": step.seconds("ttl", None),
            "auto_renew": step.has("renewed"),
            "max_hold": step.seconds("hold", None),
            "fenced": step.has("fenced"),
            "fail_fast": step.has("hasty"),
            "on_lost": self._told if step.has("told") else None,
            "shared": step.has("shared"),
            "permits": step.number("permits", 0),
            "weight": step.number("weight", 0),
        }
        wait = step.seconds("wait", 0)
        if len(step.names) > 1 or step.has("many"):
            leases = list(self.registry.acquire_many(step.names, wait, **options))
        else:
            leases = [self.registry.acquire(step.names[0], wait, **options)]
        player.leases.update(zip(step.names, leases))
        player.token = leases[0].token
        return 0

    def takes(self, player, step):
        until = time.monotonic() + 30
        while True:
            try:
                return self._take(player, step)
            except sqlock.Timeout:
                if step.seconds("wait", 0) != 0 or time.monotonic() > until:
                    raise

    def _has(self, player, name):
        if name not in player.leases:
            raise Refused("there is no lease to ask")
        return player.leases[name]

    def gives(self, player, step):
        step.only("many")
        came = None
        leases = [self._has(player, name) for name in step.names]
        player.given.update(zip(step.names, leases))
        for name, lease in zip(step.names, leases):
            del player.leases[name]
            try:
                lease.release()
            except sqlock.Error as error:
                came = came or error
        if came is not None:
            raise came
        return 0

    def renews(self, player, step):
        step.only("ttl")
        for lease in [self._has(player, name) for name in step.names]:
            lease.renew(step.seconds("ttl", None))
        return 0

    def downgrades(self, player, step):
        step.only()
        name = step.names[0]
        lease = player.given.get(name) if name not in player.leases else None
        (lease or self._has(player, name)).downgrade()
        return 0

    def permits(self, player, step):
        step.only("number")
        self.registry.set_permits(step.names[0], step.number("number", 0))
        return 0

    def holds(self, player, step):
        step.only("most")
        lease = player.leases.get(step.names[0])
        if lease is None:
            return 0
        if step.has("most") and lease.remaining > step.seconds("most", 0):
            return 0
        return int(lease.held)

    def remains(self, player, step):
        step.only()
        lease = player.leases.get(step.names[0])
        return 0 if lease is None else int(lease.remaining * 1000)

    def turns(self, player, step):
        step.only("count", "campaign", "held", "many")
        name = step.names[0]
        path = os.path.join(self.folder, name.partition("@")[0])
        if len(step.names) > 1:
            raise Refused("turns of several locks")
        for _ in range(step.number("count", 1)):
            with self.registry.lock(name, auto_renew=False) as lease:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
                if lease.token <= player.token:
                    raise AssertionError("the tokens do not rise")
                player.token = lease.token
                time.sleep(step.number("held", 1) / 1000)
                os.unlink(path)
        return 0


class Player:
    """A thread of the actor; what it holds is its own."""

    def __init__(self, actor, number):
        self.actor, self.number = actor, number
        self.leases, self.given, self.token = {}, {}, 0
        self.cues = queue.SimpleQueue()
        if number > 0:
            threading.Thread(target=self._wait_for_cues, daemon=True).start()

    def _wait_for_cues(self):
        while True:
            self.play(self.cues.get())

    def play(self, words):
        say(f"{self.number} begun {threading.get_native_id()}")
        self.token, message = 0, ""
        try:
            step = Step(words)
            call = getattr(self.actor, step.verb, None)
            if call is None or step.verb.startswith("_"):
                raise Refused("no such verb")
            code = call(self, step)
        except sqlock.Error as error:
            code, message = error.code, error.message
        except ValueError as error:  # the package refuses it by itself
            code, message = sqlock.Invalid.code, str(error)
        except Refused as error:
            code, message = NOT_PLAYED, f"not for this actor: {error}"
        except Exception as error:  # pylint: disable=broad-except
            code, message = NOT_PLAYED, repr(error)
        say(f"{self.number} ended {code} {self.token} {message}")


def main():
    actor, players = Actor(), {}
    for line in sys.stdin:
        number, *words = line.split()
        player = players.setdefault(number, None) or Player(actor, int(number))
        players[number] = player
        if player.number == 0:
            player.play(words)
        else:
            player.cues.put(words)
    os._exit(0)


if __name__ == "__main__":
    main()
