#!/usr/bin/perl
# pages.pl: manual pages of section 3 from the comments of the public headers.
#
#     pages.pl --out DIR        write a page for each function and type, one for
#                               each header, and the overview sqlock.3
#     pages.pl --check          print each public name without a description;
#                               exit 1 if there is one
#     pages.pl --names          print "kind name page" of each public name
#     pages.pl --html-index       print the lists of the HTML's first page
#     pages.pl --examples DIR   write each calling sequence as a C file
#
# Doxygen's manual output is a page for each header and struct, not for each
# function, with hundreds of warnings of mandoc -Tlint; so the headers are read
# here.  The notation is this, and no more:
#
#   - A comment belongs to the declaration that follows it without a blank line;
#     one behind a member or an enumerator belongs to that.  The first sentence
#     of a comment becomes the page's one-line description.
#   - @param NAME text and @return text begin sections; @p NAME is an argument.
#   - "TERM  text", with two blanks or more, is an item of a list.
#   - Lines that are indented by four are shown as they are.  Under a heading,
#     "Calling sequence" excepted, they are its text.
use strict;
use warnings;

my ($root) = $0 =~ m{^(.*?)/?src/man/[^/]+$} or die "$0: not in src/man\n";
$root = '.' if $root eq '';
my @headers = ('sqlock.h', map { s{^\Q$root\E/include/}{}r }
    sort(glob("$root/include/sqlock/*.h")));
my (@topics, %page_of, %kind_of, %codes, @code_list, @undocumented);

# ---------------------------------------------------------------- reading --

# The text of a comment, without its frame.
sub unframe {
    my ($text) = @_;
    $text =~ s{^/\*+}{};
    $text =~ s{\s*\*/$}{};
    my @lines = split /\n/, $text;
    s{^\s*\* ?}{} for @lines[1 .. $#lines];
    $lines[0] =~ s{^ }{} if @lines;
    shift @lines while @lines && $lines[0] =~ /^\s*$/;
    # A comment behind a declaration is indented as a whole.
    my ($least) = sort { $a <=> $b }
        map { /^( *)\S/ ? length $1 : () } @lines[1 .. $#lines];
    if (@lines && $lines[0] !~ /^ / && $least) {
        s{^ {$least}}{} for @lines[1 .. $#lines];
    }
    return join "\n", @lines;
}

# The members of a struct, or the values of an enum, each with its text.
sub members {
    my ($body, $end) = @_;
    my (@found, $before);
    while ($body =~ m{\G\s*(?:(/\*.*?\*/)|([^;,/]*?(?:\([^()]*\)[^;,/]*?)*)(?:[$end]|\s*(?=/\*|$)))}gcs) {
        my ($comment, $text) = ($1, $2);
        if (defined $comment) {
            my $start = $-[1];
            my $line = substr $body, 0, $start;
            $line =~ s/.*\n//s;
            if ($line =~ /\S/ && @found && !defined $found[-1]{text}) {
                $found[-1]{text} = unframe($comment);
            } else {
                $before = unframe($comment);
            }
            next;
        }
        $text =~ s/\s+/ /g;
        $text =~ s/^ | $//g;
        last if $text eq '' && pos($body) >= length($body);
        next if $text eq '';
        push @found, { declaration => $text, text => $before };
        undef $before;
    }
    my $rest = substr $body, pos($body) // 0;
    die "not understood: $rest\n" if $rest =~ /\S/;
    for my $member (@found) {
        my $d = $member->{declaration};
        ($member->{name}) = $d =~ /\(\*(\w+)\)/ ? $1
            : $d =~ /^(\w+)\s*=/ ? $1
            : $d =~ /(\w+)(?:\[[^\]]*\])*$/ ? $1 : $d;
    }
    return \@found;
}

sub function_parts {
    my ($declaration) = @_;
    $declaration =~ s/__attribute__\s*\(\(.*\)\)\s*$//;
    $declaration =~ s/\bSQLOCK_(?:API|MUSTUSE|INLINE)\b\s*//;
    $declaration =~ /^(.*?)(\w+)\((.*)\)\s*$/ or die "not a function: $declaration\n";
    my ($type, $name, $arguments) = ($1, $2, $3);

    my ($depth, @arguments) = (0, '');
    for my $char (split //, $arguments) {
        $depth += $char eq '(' ? 1 : $char eq ')' ? -1 : 0;
        if ($char eq ',' && $depth == 0) {
            push @arguments, '';
        } else {
            $arguments[-1] .= $char;
        }
    }
    s/^\s+|\s+$//g for @arguments;
    return ($type, $name, @arguments);
}

sub read_header {
    my ($header) = @_;
    open my $in, '<', "$root/include/$header" or die "$header: $!\n";
    local $/;
    my $text = <$in>;
    my $topic = { header => $header, pages => [], notes => [], macros => [] };
    $text =~ s{^/\*.*?\*/}{}s or die "$header: does not open with a comment\n";
    my @lines = split /\n/, unframe($&);
    $lines[0] =~ /^\S+ - (.*)/ or die "$header: opens without 'NAME - what'\n";
    my @title = $1;
    shift @lines;
    push @title, shift @lines while @lines && $lines[0] =~ /\S/;
    $topic->{title} = join ' ', @title;
    $topic->{about} = join "\n", @lines;
    $topic->{page} = $header eq 'sqlock.h'
        ? 'sqlock' : $header =~ s{^sqlock/(.*)\.h$}{sqlock-$1}r;

    # Bodies of inline functions.
    $text =~ s{^(SQLOCK_INLINE\b[^{};]*?)\s*\n\{\n.*?\n\}\n}{$1;\n}msg;
    # Preprocessor lines that declare nothing.
    while ($text =~ /^ *X\((\w+),\s*(-\d+),((?:\s*"[^"]*"\s*\\?)+)\)/mg) {
        my ($name, $value, $words) = ($1, $2, $3);
        push @code_list, [$name, $value, join '', $words =~ /"([^"]*)"/g];
        $codes{$name} = 1;
    }
    $text =~ s{^(?:/\*(?:(?!\*/).)*\*/\n(?=#ifdef __cplusplus))}{}msg;
    $text =~ s{^#ifdef __cplusplus\n(?:(?!#endif|#else)[^\n]*\n)*(?:#else\n(?:(?!#endif)[^\n]*\n)*)?#endif[^\n]*\n}{}mg;
    # An enum whose values are a table, #define NAMES(X) X(NAME, ...), is read
    # as if its values were written out.
    my %rows;
    $rows{$1} = $2 while $text =~ /^#define (\w+)\(X\)\s*\\\n((?:.*\\\n)*.*\n)/mg;
    for my $table (keys %rows) {
        my @rows;
        push @rows, [$1, $2] while $rows{$table} =~ m{X\((\w+),[^()]*\)(?:\s*/\*(.*?)\*/)?}gs;
        for my $row (@rows) {
            $row->[1] //= '';
            $row->[1] =~ s/\s*\\?\n\s*/ /g;
        }
        $text =~ s{^#define SQLOCK_X\([^)]*\) +(\w+)##\w+,\n\s*\Q$table\E\(SQLOCK_X\)\n#undef SQLOCK_X\n}
            {join '', map { "$1$_->[0], /* $_->[1] */\n" } @rows}me;
    }
    $text =~ s{^/\* clang-format.*?clang-format on \*/\n}{}msg;
    $text =~ s{^enum \{\n#define SQLOCK_X.*?^\};\n}{}msg;
    $text =~ s{^#(?:include|ifndef|endif|undef).*\n}{}mg;
    $text =~ s{^#define SQLOCK(?:_\w+)?_H\n}{}mg;

    my ($comment, $shared, $last);
    while ($text =~ m{\G(\s*)(?:(/\*.*?\*/)|#define (\w+)(\([^)]*\))?[ \t]*((?:[^\n/]|\\\n|/(?!\*))*)(/\*.*?\*/)?|((?:[^;\{]|\{(?:[^{}]|\{[^{}]*\})*\})+);)}gcs) {
        my ($space, $note, $macro, $arguments, $value, $behind, $declaration) =
            ($1, $2, $3, $4, $5, $6, $7);
        my $gap = $space =~ /\n\s*\n/;
        if (defined $comment && $gap) {
            push @{$topic->{notes}}, $comment unless $comment =~ /^-+ /;
            undef $comment;
        }
        undef $last if $gap;
        undef $shared if $gap || defined $note;
        if (defined $note) {
            push @{$topic->{notes}}, $comment if defined $comment;
            $comment = unframe($note);
            undef $last;
        } elsif (defined $macro) {
            next if $macro =~ /^SQLOCK_(?:API|MUSTUSE|INLINE|SIZED|X|VERSION_\w+)$/
                || ($arguments // '') eq '(X)';
            # Macros that follow one another share a comment.
            my $words = $behind ? unframe($behind) : $comment // $shared;
            if ($last && $macro =~ /_INIT$/) {
                push @{$last->{macros}}, $macro;
                $page_of{$macro} = $last->{name};
                $kind_of{$macro} = 'macro';
                next;
            }
            push @{$topic->{macros}}, { name => $macro, text => $words };
            $page_of{$macro} = $topic->{page};
            $kind_of{$macro} = 'macro';
            push @undocumented, "$header: $macro" unless defined $words;
            undef $comment;
            $shared = $words;
        } else {
            $declaration =~ s/^\s+//;
            my $page = one_declaration($header, $topic, $declaration, $comment, $last);
            $last = $page if $page;
            undef $comment;
        }
    }
    my $rest = substr $text, pos($text) // 0;
    die "$header: not understood: ", substr($rest, 0, 200), "\n" if $rest =~ /\S/;
    push @topics, $topic;
}

sub one_declaration {
    my ($header, $topic, $declaration, $comment, $last) = @_;
    my $page = { header => $header, topic => $topic, text => $comment, macros => [] };
    if ($declaration =~ /^typedef struct \w+\s*\{(.*)\}\s*(\w+)$/s) {
        @$page{qw(kind name members source)} = ('struct', $2, members($1, ';'), $declaration);
    } elsif ($declaration =~ /^struct (\w+)\s*\{(.*)\}$/s) {
        # In place of its declaration without members.
        @$page{qw(kind name members source)} = ('struct', $1, members($2, ';'), $declaration);
        $_->{pages} = [grep { $_->{name} ne $page->{name} } @{$_->{pages}}] for @topics;
    } elsif ($declaration =~ /^typedef enum \w+\s*\{(.*)\}\s*(\w+)$/s) {
        @$page{qw(kind name members source)} = ('enum', $2, members($1, ','), $declaration);
    } elsif ($declaration =~ /^enum\s*\{(.*)\}$/s) {
        for my $member (@{members($1, ',')}) {
            push @{$topic->{macros}}, $member;
            $page_of{$member->{name}} = $topic->{page};
            $kind_of{$member->{name}} = 'constant';
            push @undocumented, "$header: $member->{name}" unless defined $member->{text};
        }
        return undef;
    } elsif ($declaration =~ /^typedef .*?\(\*(\w+)\)/s) {
        @$page{qw(kind name source)} = ('function type', $1, $declaration);
    } elsif ($declaration =~ /^typedef struct \w+ (\w+)$/) {
        @$page{qw(kind name source)} = ('handle', $1, $declaration);
    } else {
        $declaration =~ s/\s+/ /g;
        my ($type, $name, @arguments) = function_parts($declaration);
        my $function = { type => $type, name => $name, arguments => \@arguments };
        # Declarations that follow one another share a comment and a page.
        if (!defined $comment && $last && $last->{kind} eq 'function') {
            push @{$last->{functions}}, $function;
            $page_of{$name} = $last->{name};
            $kind_of{$name} = 'function';
            return $last;
        }
        @$page{qw(kind name functions)} = ('function', $name, [$function]);
    }
    push @undocumented, "$header: $page->{name}" unless defined $page->{text};
    for my $member (@{$page->{members} // []}) {
        push @undocumented, "$header: $page->{name}.$member->{name}"
            unless defined $member->{text};
        next unless $page->{kind} eq 'enum';
        $page_of{$member->{name}} = $page->{name};
        $kind_of{$member->{name}} = 'constant';
    }
    $page_of{$page->{name}} = $page->{name};
    $kind_of{$page->{name}} = $page->{kind};
    push @{$topic->{pages}}, $page;
    return $page;
}

# ---------------------------------------------------------------- writing --

my $here = ''; # the page that is being written

sub escape {
    my ($text) = @_;
    $text =~ s/\\/\\e/g;
    $text =~ s/^([.'])/\\&$1/mg;
    return $text;
}

# The macro for one word, or undef: it is text.
sub macro_for {
    my ($word) = @_;
    if ($word =~ /^(sqlock_\w+)\(\)$/) {
        return $page_of{$1} && $page_of{$1} ne $here ? "Xr $1 3" : "Fn $1";
    } elsif ($word =~ /^(sqlock_\w+)\.(\w+)$/ && $page_of{$1}) {
        return "Va $word";
    } elsif ($word =~ /^sqlock_\w+$/ && $page_of{$word}) {
        return "Vt $word";
    } elsif ($word =~ /^(E[A-Z]+)$/ && $codes{$word}) {
        return "Dv SQLOCK_$word";
    } elsif ($word =~ /^SQLOCK_\w+$/ || $word eq 'NULL') {
        return "Dv $word";
    } elsif ($word =~ /^`(.*)`$/s) {
        my $quoted = $1;
        return $quoted =~ /^\w+$/ ? "Va $quoted" : 'Ql ' . quote($quoted);
    } elsif ($word =~ /^\@p (\w+)$/) {
        return "Fa $1";
    } elsif ($word =~ /^sqlock(?:\/\w+)?\.h$/) {
        return "In $word";
    }
    return undef;
}

sub quote {
    my ($text) = @_;
    $text = escape($text);
    $text =~ s/"/\\(dq/g;
    return $text =~ /[\s"]|^[.,:;()\[\]?!|]$/ ? "\"$text\"" : $text;
}

# A paragraph: macros on lines of their own, a line for each sentence.
sub running {
    my ($text) = @_;
    my @out = ('');
    $text =~ s/([.?!])\s*\n\s*/$1  /g;
    $text =~ s/\s*\n\s*/ /g;
    $text =~ s/\@p\s+/\@p /g;
    $text =~ s/([.?!])  +(?=[A-Z`@(])/$1\n/g;
    for my $line (split /\n/, $text) {
        push @out, '' if $out[-1] ne '';
        for my $word ($line =~ /(\(*(?:\@p \w+|`[^`]+`)\S*|\S+)/g) {
            my ($open, $core, $close) =
                $word =~ /^(\(*)(\@p \w+|`[^`]+`|sqlock_\w+\(\)|sqlock(?:\/\w+)?\.h|[\w.]*\w)((?:[.,:;)?!]|'s)*)$/;
            my $macro = defined $core ? macro_for($core) : undef;
            if ($macro && $close !~ /'s/) {
                push @out, '.' . ($open ? $macro =~ s/^(\w+) /"$1 " . join('', map { "$_ " } split m{}, $open)/er : $macro)
                    . join '', map { " $_" } split //, $close;
                push @out, '';
            } elsif ($macro) {
                push @out, ".$macro Ns $close", '';
            } elsif (length($out[-1]) + length($word) > 76) {
                push @out, $word;
            } else {
                $out[-1] .= ($out[-1] eq '' ? '' : ' ') . $word;
            }
        }
    }
    return join '', map { $_ eq '' ? () : /^\.[A-Z][a-z] / ? "$_\n" : escape($_) . "\n" } @out;
}

# "TERM  text" begins an item, unless the blanks follow a sentence.
my $item = qr/^( *)(\S(?:(?! {2}).){0,38}?[^\s.:;?!]|\S)( {2,})(\S.*)$/;

sub blocks {
    my ($text) = @_;
    my @lines = split /\n/, $text;
    my $out = '';
    my $first = 1;
    while (@lines) {
        if ($lines[0] =~ /^\s*$/) {
            shift @lines;
            next;
        }
        if (@lines > 1 && $lines[0] =~ /^[A-Z][^.]*$/ && $lines[0] !~ /[,;:]$/
            && $lines[0] !~ $item && $lines[1] =~ /^ {4}/) {
            my $heading = shift @lines;
            my @body;
            push @body, shift @lines while @lines && ($lines[0] =~ /^ {4}/ || $lines[0] =~ /^\s*$/);
            s/^ {4}// for @body;
            $out .= ".Ss $heading\n" . ($heading eq 'Calling sequence'
                ? literal(@body) : blocks(join("\n", @body)));
            $first = 0;
            next;
        }
        if ($lines[0] =~ $item) {
            my $indent = length $1;
            my @items;
            while (@lines) {
                if ($lines[0] =~ /^( *)\S/ && length $1 > $indent && @items) {
                    $items[-1][1] .= "\n" . shift(@lines) =~ s/^ +//r;
                } elsif ($lines[0] =~ $item && length $1 == $indent) {
                    push @items, [$2, $4];
                    shift @lines;
                } else {
                    last;
                }
            }
            $out .= ".Bl -tag -width Ds\n" . join('', map {
                '.It ' . term($_->[0]) . "\n" . running($_->[1]) } @items) . ".El\n";
            $first = 0;
            next;
        }
        if ($lines[0] =~ /^ {4}/) {
            my @body;
            push @body, shift @lines
                while @lines && ($lines[0] =~ /^ {4}/ || ($lines[0] =~ /^\s*$/ && @lines > 1 && $lines[1] =~ /^ {4}/));
            s/^ {4}// for @body;
            $out .= literal(@body);
            $first = 0;
            next;
        }
        my @paragraph = shift @lines;
        push @paragraph, shift @lines
            while @lines && $lines[0] =~ /\S/ && $lines[0] !~ /^ {4}/
            && !($lines[0] =~ $item && $lines[0] !~ /\.  /);
        $out .= ".Pp\n" unless $first;
        $out .= running(join "\n", @paragraph);
        $first = 0;
    }
    return $out;
}

sub literal {
    my @lines = @_;
    pop @lines while @lines && $lines[-1] =~ /^\s*$/;
    return ".Bd -literal -offset indent\n" . join('', map { escape($_) . "\n" } @lines) . ".Ed\n";
}

sub term {
    my ($term) = @_;
    my @words = map {
        my ($core, $close) = /^(.*?)(,?)$/;
        my $macro = macro_for($core);
        ($macro ? "$macro" : 'No ' . quote($core)) . ($close ? " $close" : '');
    } split / /, $term;
    return join ' ', @words;
}

# The text, the arguments and the results of a comment.
sub sections {
    my ($text) = @_;
    my ($kind, %found) = ('text', arguments => [], text => '');
    for my $line (split /\n/, $text) {
        while ($line =~ s/^(.*?)(?:^|\s)\@(param(?:\[[a-z,]+\])?|return)\s+//) {
            $found{$kind eq 'text' ? 'text' : $kind} .= "$1\n" if $kind ne 'argument' && $1 ne '';
            if ($2 eq 'return') {
                $kind = 'result';
                $found{result} = '';
            } else {
                $kind = 'argument';
                push @{$found{arguments}}, '';
            }
            last;
        }
        if ($kind eq 'argument') {
            $found{arguments}[-1] .= "$line\n";
        } else {
            $found{$kind} .= "$line\n";
        }
    }
    # Lines of a result are indented as the first one is behind @return.
    my ($first, @more) = split /\n/, $found{result} // '';
    my ($least) = sort { $a <=> $b } map { /^( *)\S/ ? length $1 : () } @more;
    $found{result} = join "\n", $first, map { /\S/ ? substr $_, $least : '' } @more
        if defined $least;
    return \%found;
}

sub first_sentence {
    my ($text) = @_;
    $text =~ s/\s*\n\s*/ /g;
    $text =~ s/^\s+//;
    $text =~ s/ \@(?:param|return).*//s;
    $text =~ s/[.;:](?: .*|$)//s;
    $text =~ s/\@p //g;
    $text =~ s/`//g;
    $text = lcfirst $text unless $text =~ /^[A-Z][A-Z_]/ || $text =~ /^(?:SQL|UTF)/;
    return escape($text);
}

my ($day, $month, $year) = (gmtime($ENV{SOURCE_DATE_EPOCH} // time))[3 .. 5];
my $date = (qw(January February March April May June July August September
    October November December))[$month] . " $day, " . ($year + 1900);

sub head {
    my ($name, @more) = @_;
    return ".\\\" Made by src/man/pages.pl from the comments in include/.\n"
        . ".Dd $date\n.Dt " . uc($name) . " 3\n.Os\n.Sh NAME\n"
        . join(" ,\n", map { ".Nm $_" } $name, @more) . "\n";
}

sub see_also {
    my (@names) = @_;
    my %seen;
    @names = sort grep { !$seen{$_}++ && $_ ne $here } @names;
    return @names ? ".Sh SEE ALSO\n" . join(" ,\n", map { ".Xr $_ 3" } @names) . "\n" : '';
}

sub function_page {
    my ($page) = @_;
    my $parts = sections($page->{text});
    my @functions = @{$page->{functions}};
    my @also = map { $_->{name} } @functions[1 .. $#functions];
    my $out = head($page->{name}, @also) . '.Nd ' . first_sentence($parts->{text})
        . "\n.Sh LIBRARY\nlibsqlock\n.Pq pkg-config --cflags --libs sqlock\n"
        . ".Sh SYNOPSIS\n.In $page->{header}\n";
    my %types;
    for my $function (@functions) {
        my @arguments = @{$function->{arguments}};
        $out .= ".Ft $function->{type}\n.Fn $function->{name} "
            . join(' ', map { quote($_) } @arguments) . "\n";
        $types{$_}++ for grep { $page_of{$_} } map { /\b(sqlock_\w+)\b/g } $function->{type}, @arguments;
    }
    $out .= ".Sh DESCRIPTION\n" . blocks($parts->{text});
    if (@{$parts->{arguments}}) {
        $out .= ".Pp\nThe arguments are:\n.Bl -tag -width Ds\n";
        for (@{$parts->{arguments}}) {
            my ($names, $text) = /^((?:\w+, )*\w+)\s+(.*)$/s or die "\@param $_\n";
            $out .= '.It Fa ' . join(' , ', split /, /, $names) . "\n" . running($text);
        }
        $out .= ".El\n";
    }
    $out .= return_values($parts->{result} // '', $functions[0]{type});
    $out .= see_also($page->{topic}{page}, keys %types, related($page));
    return $out;
}

# The results that the comment lists; any others are those of all functions.
sub return_values {
    my ($text, $type) = @_;
    my $others = $type =~ /^int\b/ && $text !~ /any other/
        ? ".Xr sqlock 3\nsays what any other code means.\n" : '';
    return '' if $text eq '' && $others eq '';
    return ".Sh RETURN VALUES\n0: done.\n$others" if $text eq '';
    return ".Sh RETURN VALUES\n" . blocks($text) . ($others && ".Pp\n$others");
}

# The functions and types that the text names.
sub related {
    my ($page) = @_;
    my $all = join ' ', $page->{text}, map { $_->{text} // '' } @{$page->{members} // []};
    return grep { $page_of{$_} && ($kind_of{$_} ne 'macro') && $_ !~ /^SQLOCK/ && $page_of{$_} ne $here }
        $all =~ /\b(sqlock_\w+)\b/g;
}

sub type_page {
    my ($page) = @_;
    my $text = $page->{text};
    my $source = $page->{source};
    $source =~ s{\s*/\*.*?\*/}{}gs;
    $source =~ s{^ +\n}{}mg;
    $source =~ s{\n\s*\n}{\n}g;
    my @source = map { s/ {2,}(?=\S)/ /gr =~ s/^ /    /r } split /\n/, $source;
    $source[-1] .= ';';
    my $parts = sections($text);
    my $out = head($page->{name}) . '.Nd ' . first_sentence($parts->{text})
        . "\n.Sh SYNOPSIS\n.In $page->{header}\n" . literal(@source)
        . ".Sh DESCRIPTION\n" . blocks($parts->{text});
    if (@{$page->{macros}}) {
        $out .= ".Pp\nA variable begins with\n.Dv $page->{macros}[0] :\n"
            . literal("$page->{name} name = $page->{macros}[0];");
    }
    if ($page->{members}) {
        $out .= ".Bl -tag -width Ds\n";
        for my $member (@{$page->{members}}) {
            my $what = $page->{kind} eq 'enum' ? "Dv $member->{name}" : 'Va ' . quote($member->{declaration});
            my $member_parts = sections($member->{text} // '');
            $out .= ".It $what\n" . running($member_parts->{text});
            if ($member_parts->{result}) {
                $out .= "Returns " . running($member_parts->{result});
            }
        }
        $out .= ".El\n";
    }
    $out .= ".Sh RETURN VALUES\n" . blocks($parts->{result}) if $parts->{result};
    $out .= see_also($page->{topic}{page}, related($page), users($page->{name}));
    return $out;
}

# The functions that take a type.
sub users {
    my ($name) = @_;
    return () if $name eq 'sqlock_error' || $name eq 'sqlock_registry' || $name eq 'sqlock_lock';
    my @found;
    for my $page (map { @{$_->{pages}} } @topics) {
        for my $function (@{$page->{functions} // []}) {
            push @found, $function->{name}
                if grep { /\b\Q$name\E\b/ } $function->{type}, @{$function->{arguments}};
        }
    }
    return @found;
}

sub index_of {
    my ($topic) = @_;
    my $out = '';
    for my $group (['Functions', 'function'], ['Types', 'struct', 'enum', 'handle', 'function type']) {
        my ($heading, @kinds) = @$group;
        my @pages = grep { my $page = $_; grep { $page->{kind} eq $_ } @kinds } @{$topic->{pages}};
        next unless @pages;
        $out .= ".Ss $heading\n" if $topic->{page} ne 'sqlock';
        $out .= ".Bl -tag -width Ds -compact\n";
        for my $page (@pages) {
            my @names = $page->{functions} ? map { $_->{name} } @{$page->{functions}} : $page->{name};
            $out .= '.It ' . join(' , ', map { "Xr $_ 3" } @names) . "\n"
                . first_sentence(sections($page->{text})->{text}) . "\n";
        }
        $out .= ".El\n";
    }
    return $out;
}

sub constants_of {
    my ($topic) = @_;
    my @macros = @{$topic->{macros}};
    return '' unless @macros;
    return ".Ss Constants\n.Bl -tag -width Ds\n"
        . join('', map { ".It Dv $_->{name}\n" . running($_->{text} // '') } @macros) . ".El\n";
}

sub topic_text {
    my ($topic) = @_;
    my $out = join ".Pp\n", map { blocks($_) } $topic->{about}, @{$topic->{notes}};
    $out =~ s/(^|\n)\.Pp\n(?=\.(?:Ss|Bd|Bl|Pp))/$1/g;
    return $out;
}

sub topic_page {
    my ($topic) = @_;
    my $text = topic_text($topic);
    $text =~ s/^\.Pp\n//;
    return head($topic->{page}) . '.Nd ' . escape($topic->{title}) . "\n.Sh SYNOPSIS\n.In $topic->{header}\n"
        . ".Sh DESCRIPTION\n$text" . index_of($topic) . constants_of($topic)
        . ".Sh SEE ALSO\n.Xr sqlock 3\n";
}

# The overview: a page of our own, with the lists where it has a line for them.
sub overview {
    open my $in, '<', "$root/src/man/sqlock.3" or die "sqlock.3: $!\n";
    my $out = '';
    while (my $line = <$in>) {
        if ($line =~ /^\.\\" LIST (\w+)$/) {
            $out .= $1 eq 'contract' ? topic_text($topics[0])
                : $1 eq 'codes' ? ".Bl -tag -width Ds -compact\n" . join('', map {
                    ".It Dv SQLOCK_$_->[0]\n" . escape($_->[2]) . "\n" } @code_list) . ".El\n"
                : $1 eq 'core' ? index_of($topics[0])
                : $1 eq 'constants' ? constants_of($topics[0])
                : $1 eq 'topics' ? ".Bl -tag -width Ds -compact\n" . join('', map {
                    ".It In $_->{header}\n" . escape($_->{title}) . ":\n.Xr $_->{page} 3\n" } @topics[1 .. $#topics]) . ".El\n"
                : die "sqlock.3: no list $1\n";
        } else {
            $out .= $line;
        }
    }
    return $out;
}

sub write_file {
    my ($path, $text) = @_;
    $text =~ s/ +$//mg;
    open my $out, '>', $path or die "$path: $!\n";
    print $out $text;
    close $out or die "$path: $!\n";
}

# The pages of each topic, for the first page of the HTML.
sub html_index {
    my $out = '';
    for my $topic (@topics) {
        $out .= "<h2><a href=\"$topic->{page}.3.html\">&lt;$topic->{header}&gt;</a></h2>\n"
            . '<p>' . html(ucfirst $topic->{title}) . ".</p>\n<dl>\n";
        # Functions first.
        for my $page (sort { !$a->{functions} <=> !$b->{functions} } @{$topic->{pages}}) {
            next unless defined $page->{text};
            my @names = $page->{functions} ? map { $_->{name} } @{$page->{functions}} : $page->{name};
            $out .= '<dt>' . join(', ', map { "<a href=\"$_.3.html\">$_</a>" } @names)
                . '</dt><dd>' . html(first_sentence(sections($page->{text})->{text})) . "</dd>\n";
        }
        $out .= "</dl>\n";
    }
    return $out;
}

sub html {
    my ($text) = @_;
    $text =~ s/\\e/\\/g;
    $text =~ s/&/&amp;/g;
    $text =~ s/</&lt;/g;
    return $text;
}

# --------------------------------------------------------------- commands --

my ($command, $dir) = (@ARGV, '', '');
for my $header (@headers) {
    read_header($header);
}
for my $topic (@topics) {
    $page_of{$topic->{page}} = $topic->{page};
}
if ($command eq '--out') {
    for my $topic (@topics) {
        $here = $topic->{page};
        write_file("$dir/$here.3", $here eq 'sqlock' ? overview() : topic_page($topic));
        for my $page (@{$topic->{pages}}) {
            next unless defined $page->{text};
            $here = $page->{name};
            write_file("$dir/$here.3", $page->{functions} ? function_page($page) : type_page($page));
            for my $function (@{$page->{functions} // []}) {
                next if $function->{name} eq $here;
                unlink "$dir/$function->{name}.3";
                symlink "$here.3", "$dir/$function->{name}.3" or die "symlink: $!\n";
            }
        }
    }
} elsif ($command eq '--check') {
    print "$_ has no description\n" for @undocumented;
    exit(@undocumented > 0);
} elsif ($command eq '--names') {
    print "$kind_of{$_} $_ $page_of{$_}\n" for grep { $kind_of{$_} } sort keys %page_of;
} elsif ($command eq '--html-index') {
    print html_index();
} elsif ($command eq '--examples') {
    for my $topic (@topics) {
        my ($code) = $topic->{about} =~ /^Calling sequence\n((?:(?: {4}.*)?\n?)*)/m;
        next unless $code;
        $code =~ s/^ {4}//mg;
        write_file("$dir/$topic->{page}.c", $code);
    }
} else {
    die "usage: pages.pl --out DIR | --check | --names | --html-index | --examples DIR\n";
}
