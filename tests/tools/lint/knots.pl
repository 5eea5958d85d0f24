#!/usr/bin/env perl
# knots.pl: the files of each room of src, and of each driver, stand on floors:
# a file calls only files below it.  Prints each set of files that call one
# another in a circle; exit status 1 if there is any.
#
#     knots.pl            check
#     knots.pl --floors   print each room with its floors, the lowest first
use strict;
use warnings;

my $shows = @ARGV && $ARGV[0] eq '--floors';
my $status = 0;

# Return the text of a file without comments, strings and directives.
sub code_of {
    my ($path) = @_;
    local $/;
    open my $file, '<', $path or die "$path: $!\n";
    my $text = <$file>;
    $text =~ s{/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^#.*?[^\\]\n}{ }gms;
    return $text;
}

# Return for each of the files which others it uses: by a name that one of those
# defines and that is not static there.
sub uses_of {
    my (@paths) = @_;
    my (%home, %text, %uses);
    for my $path (@paths) {
        $text{$path} = code_of($path);
        $home{$1} = $path while $text{$path} =~
            /^(?!static\b|typedef\b|extern\b)[a-z][\w\s*]*?\b(\w+)\s*
             (?:\([^;{}]*\)|(?:\[\w*\])*\s*=)\s*\{/gmx;
    }
    for my $path (@paths) {
        $uses{$path} = {};
        # A struct may have the name of a function.
        (my $text = $text{$path}) =~ s/\bstruct\s+\w+//g;
        for my $name ($text =~ /(?<![.>])\b([a-z]\w*)/g) {
            my $other = $home{$name};
            $uses{$path}{$other} = 1 if defined $other && $other ne $path;
        }
    }
    return %uses;
}

# Take away, again and again, the files that use none of those that are left.
# Return these floors; what is left in %$uses stands in circles, or above them.
sub floors_of {
    my ($uses) = @_;
    my @floors;
    while (my @floor = grep { !grep { $uses->{$_} } keys %{$uses->{$_}} }
            sort keys %$uses) {
        push @floors, [@floor];
        delete @{$uses}{@floor};
    }
    return @floors;
}

for my $room (sort grep { -d } glob 'src/* src/drivers/* src/cli/* src/stock/*') {
    next if $room =~ m{^src/(examples|python|man)} || $room eq 'src/drivers';
    my %uses = uses_of(glob "$room/*.c");
    my @floors = floors_of(\%uses);
    # The same from above: who is used by nobody that is left is in no circle.
    my $count;
    do {
        $count = keys %uses;
        my %used = map { %{$_} } values %uses;
        delete @uses{grep { !$used{$_} } keys %uses};
    } while (keys %uses < $count);
    if (%uses) {
        print "$room:1: these files call one another in a circle: ",
            join(' ', map { m{([^/]*)\.c$} } sort keys %uses), "\n";
        $status = 1;
    }
    next if !$shows || !@floors;
    print "$room\n";
    for my $i (0 .. $#floors) {
        print "    $i  ", join(' ', map { m{([^/]*)\.c$} } @{$floors[$i]}), "\n";
    }
}
exit $status;
