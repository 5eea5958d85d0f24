#!/usr/bin/env perl
# statements.pl FILE: print C that has the statements of sql/DATABASE/NAME.sql
# as `const struct lk_sql lk_sql_DATABASE_NAME[]` (src/db/dialect.h).
#
# The file is made of sections; what they may have is said at the head of
# sql/*/statements.sql.  Each statement is written once for all variants in which
# it has the same text.  A name in braces that the program gives stays in the
# text, and a table stands there as {INT_LOCK}.  The names of statements and
# parameters are C enumerators, which the compiler checks; all else that is wrong
# is refused here.
use strict;
use warnings;

my ($file) = @ARGV;
my ($database, $name) = $file =~ m{^sql/(\w+)/([\w-]+)\.sql$}
    or die "$0: $file is not sql/DATABASE/NAME.sql\n";

# By the file's name: the prefixes of enumerators, the tags, those in one list
# excluding each other, and the names that the program gives.
my %about = (
    'statements' => {
        kind => 'SQLOCK_SQL_', parameter => 'SQLOCK_P_',
        tags => [['sqlock', 'spring7', 'spring6'], ['queue', 'poll']],
        given => [],
        tables => ['INT_LOCK', 'INT_LOCK_SERVER', 'INT_LOCK_MARK', 'INT_DONE'],
    },
    'stock-statements' => {
        kind => 'SQLOCK_STOCK_SQL_', parameter => 'SQLOCK_SP_',
        tags => [['ours', 'exact', 'loose'], ['versioned', 'unversioned']],
        given => ['item', 'quantity', 'version', 'most'],
        tables => ['INT_STOCK', 'INT_STOCK_ENTRY', 'INT_STOCK_RESERVATION'],
    },
);
my $about = $about{$name} or die "$file: there are no such statements\n";
my %annotations = (
    'insert id' => '.insert_id = SQLOCK_INSERT_ID_ROW',
    'insert id complement' => '.insert_id = SQLOCK_INSERT_ID_COMPLEMENT',
    'insert id and flag' => '.insert_id = SQLOCK_INSERT_ID_UPSERT',
    'not prepared' => '.is_unprepared = true',
    'never waits' => '.is_nowait = true',
    'reads' => '.is_read = true',
    'may be lost' => '.may_be_lost = true',
);
my %is_tag = map { $_ => 1 } map { @$_ } @{$about->{tags}};
my %is_given = map { $_ => 1 } @{$about->{given}};
my %is_table = map { $_ => 1 } @{$about->{tables}};
my @variants = map { my $one = $_; map { [$one, $_] } @{$about->{tags}[1]} }
    @{$about->{tags}[0]};

sub refuse {
    my ($line, $why) = @_;
    die "$file:$line: $why\n";
}

# ------------------------------------------------------------ sections --

my $is_numbered; # a parameter is $1, $2 and so on; else each is `?`
my (@statements, %fragments);

sub begin_section {
    my ($title) = @_;
    my %section = (line => $., text => '');

    $title =~ /^(define )?([a-z][a-z0-9_ ]*?)(?: \(([^)]*)\))?(?: \[([^]]*)\])?$/
        or refuse($., "'$title' is no title of a section");
    $section{name} = $2 =~ tr/ /_/r;
    $section{tags} = [split ' ', $3 // ''];
    $section{annotations} = [split /, /, $4 // ''];
    $is_tag{$_} or refuse($., "($_) is unknown") for @{$section{tags}};
    for (@{$section{annotations}}) {
        $annotations{$_} && !$1 or refuse($., "[$_] is unknown");
    }
    if ($1) {
        push @{$fragments{$section{name}}}, \%section;
    } else {
        push @statements, \%section;
    }
    return \%section;
}

open my $in, '<', $file or die "$0: $file: $!\n";
my $section;
while (<$in>) {
    if (/^-- ---- parameters are (\$1|\?)$/) {
        $is_numbered = $1 ne '?';
    } elsif (/^-- ---- (.*?)\s*$/) {
        $section = begin_section($1);
    } elsif (/^\s*--/) {
        $section->{has_comment} = 1 if $section;
    } elsif (!/^\s*$/) {
        $section or refuse($., 'this is in no section');
        $section->{text} .= $_;
    }
}
close $in;
defined $is_numbered
    or refuse(1, 'say: -- ---- parameters are ?    (or: are $1)');

# ------------------------------------------------------------ expanding --

# Return whether a section is for that variant: of each list of tags it has none,
# or the variant's.
sub fits {
    my ($section, $variant) = @_;

    for my $i (0, 1) {
        my %ours = map { $_ => 1 } @{$about->{tags}[$i]};
        my @named = grep { $ours{$_} } @{$section->{tags}};

        return 0 if @named && !grep { $_ eq $variant->[$i] } @named;
    }
    return 1;
}

# Return the one of these sections that is for the variant.
sub choose {
    my ($sections, $variant) = @_;
    my @fitting = grep { fits($_, $variant) } @$sections;

    refuse($fitting[1]{line},
        "line $fitting[0]{line} has the same for (@$variant)") if @fitting > 1;
    return $fitting[0];
}

my %is_used;

sub fragment {
    my ($name, $variant, $line, $depth) = @_;
    my $section = choose($fragments{$name} // [], $variant);

    return "{$name}" if $is_given{$name};
    $section or refuse($line, "there is no {$name} for (@$variant)");
    refuse($line, "{$name} contains itself") if $depth > 20;
    $is_used{$section->{line}} = 1;
    return expand($section, $variant, $depth + 1);
}

sub expand {
    my ($section, $variant, $depth) = @_;
    my $text = $section->{text};

    $text =~ s/^\s+|;?\s*$//g;
    $text =~ s/\{(\w+)\}/fragment($1, $variant, $section->{line}, $depth)/ge;
    return $text;
}

# Return the text as it is sent, but for the names that the program puts in, and
# the parameters in their order.
sub finish {
    my ($text, $line) = @_;
    my (@order, %place);

    $text =~ s/('[^']*')|\s+/$1 \/\/ ' '/ge;
    $text =~ s/^ | $//g;
    $text ne '' or refuse($line, 'the statement is empty');
    $text =~ s/\b(INT_[A-Z_]+)\b/
        $is_table{$1} or refuse($line, "there is no table $1"); "{$1}"/gex;
    $text =~ s{('[^']*')|(?<![:\w]):([a-z]\w*)}{
        if (defined $1) {
            $1;
        } elsif ($is_numbered) {
            $place{$2} //= push @order, $2;
            "\$$place{$2}";
        } else {
            push @order, $2;
            '?';
        }
    }gex;
    return ($text, @order);
}

# ------------------------------------------------------------- printing --

sub quote {
    my ($text) = @_;

    $text =~ s/([\\"])/\\$1/g;
    return "\"$text\"";
}

my (%of_kind, @lines);
for (@statements) {
    $_->{has_comment} || $of_kind{$_->{name}}
        or refuse($_->{line}, 'say in a comment what it does');
    push @{$of_kind{$_->{name}}}, $_;
}
for my $statement (@statements) {
    my (%variants_of, @texts);

    for my $variant (grep { fits($statement, $_) } @variants) {
        choose($of_kind{$statement->{name}}, $variant);
        my ($text, @order) = finish(expand($statement, $variant, 0),
            $statement->{line});
        my $entry = '.text = ' . quote($text) . ', .count = ' . @order .
            ', .order = {' .
            (join(', ', map { $about->{parameter} . uc } @order) || '0') . '}';

        push @texts, $entry unless $variants_of{$entry};
        push @{$variants_of{$entry}}, uc "lk_$variant->[0]_$variant->[1]";
    }
    push @lines, "#line $statement->{line} \"$file\"\n",
        map { '    {.kind = ' . $about->{kind} . uc($statement->{name}) .
        ', .variants = ' . join(' | ', @{$variants_of{$_}}) . ', ' .
        join('', map { "$annotations{$_}, " } @{$statement->{annotations}}) .
        "$_},\n" } @texts;
}
for my $name (sort keys %fragments) {
    $is_used{$_->{line}} or refuse($_->{line}, "{$name} is not used here")
        for @{$fragments{$name}};
}

my $symbol = "lk_sql_${database}_$name" =~ tr/-/_/r;
print "/* from $file */\n#include \"db/dialect.h\"\n",
    "extern const struct lk_sql $symbol\[];\n",
    "const struct lk_sql $symbol\[] = {\n", @lines, "    {.text = NULL},\n};\n";
