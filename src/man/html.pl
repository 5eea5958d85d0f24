#!/usr/bin/perl
# html.pl PAGES OUT: the manual as HTML, a file for each page, and an index by
# topic.  PAGES has the pages of section 3 that pages.pl made of the headers; the
# others are beside this program.  A page with more headings than one of a
# function has a table of contents.
use strict;
use warnings;

my ($pages, $out) = @ARGV;
die "usage: html.pl PAGES OUT\n" unless defined $out;
my ($here) = $0 =~ m{^(.*)/[^/]+$} or die "$0: call it by its path\n";
my $headings_of_function = 6;
my $viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">';

sub run {
    open my $in, '-|', @_ or die "$_[0]: $!\n";
    local $/;
    my $text = <$in>;
    close $in or die "@_ failed\n";
    return $text;
}

sub write_file {
    my ($name, $text) = @_;
    open my $file, '>', "$out/$name" or die "$out/$name: $!\n";
    print $file $text;
    close $file or die "$out/$name: $!\n";
}

# -------------------------------------------------------------- one page --

my $heading = qr{<h([12]) class="S[hs]" id="[^"]*"><a class="permalink" href="([^"]*)">(.*?)</a></h}s;
my $command = qr{<dt id="[^"]*"><a class="permalink" href="([^"]*)"><code class="Cm">(.*?)</code></a>}s;

# Links to the headings of a page, and to each command that a list describes.
sub contents {
    my ($html) = @_;
    my (@sections, $count);
    while ($html =~ /$heading|$command/g) {
        my ($level, $link, $title, $to_command, $name) = ($1, $2, $3, $4, $5);
        if (defined $to_command) {
            # `doctor` and `doctor --after-restore` are two items.
            next if $sections[-1]{inner} =~ m{>\Q$name\E</a></li>\n$};
            $sections[-1]{inner} .= "<li class=\"Cm\"><a href=\"$to_command\">$name</a></li>\n";
            next;
        }
        $count++;
        if ($level == 1) {
            push @sections, { link => "<a href=\"$link\">$title</a>", inner => '' };
        } else {
            $sections[-1]{inner} .= "<li><a href=\"$link\">$title</a></li>\n";
        }
    }
    return '' if $count <= $headings_of_function;
    return "<details class=\"toc\"><summary>Contents</summary>\n<nav aria-label=\"Contents\"><ul>\n"
        . join('', map { "<li>$_->{link}"
            . ($_->{inner} eq '' ? '' : "\n<ul>\n$_->{inner}</ul>") . "</li>\n" } @sections)
        . "</ul></nav></details>\n";
}

sub page {
    my ($path, $is_page) = @_;
    my $html = run('mandoc', '-Thtml', '-Ostyle=style.css,man=%N.%S.html', $path);
    my $toc = contents($html);
    my $class = $toc eq '' ? '' : ' class="long"';
    $html =~ s{<html>}{<html lang="en">};
    $html =~ s{ *<meta name="viewport".*\n}{};
    $html =~ s{<head>}{<head>\n$viewport};
    $html =~ s{<body>}{<body$class>\n<p class="up"><a href="index.html">sqlock manual</a></p>\n$toc};
    # A link to another manual, such as fork(2), has no file here; the name of a
    # function leads to its page.
    $html =~ s{<a class="Xr" href="([^"]*)"[^>]*>([^<]*)</a>}
        {$is_page->{$1} ? $& : "<span class=\"Xr\">$2</span>"}ge;
    $html =~ s{<a class="permalink" href="\#[^"]*"><code class="Fn"([^>]*)>(\w+)</code></a>}
        {$is_page->{"$2.3.html"} && $path !~ m{/$2\.3$}
            ? "<a href=\"$2.3.html\"><code class=\"Fn\"$1>$2</code></a>" : $&}ge;
    return $html;
}

# ----------------------------------------------------------------- index --

sub entry {
    my ($path) = @_;
    my ($name, $section) = $path =~ m{([^/]+)\.(\d)$};
    open my $in, '<', $path or die "$path: $!\n";
    my ($about) = map { /^\.Nd (.*)/ ? $1 : () } <$in>;
    return "<dt><a href=\"$name.$section.html\">$name($section)</a></dt>\n<dd>$about</dd>\n";
}

sub list {
    my ($title, @paths) = @_;
    return "<h2>$title</h2>\n<dl>\n" . join('', map { entry($_) } @paths) . '</dl>';
}

my @start = ("$here/sqlock.1", "$here/sqlock-run.1", "$here/sqlock-lead.1",
    "$pages/sqlock.3", "$here/sqlock-cpp.7", "$here/sqlock-python.7");
my %is_start = map { $_ => 1 } @start;
my @background = grep { !$is_start{$_} } glob "$here/*.7";
my %page_of = map { m{([^/]+)$} ? ("$1.html" => $_) : () } @start, @background,
    glob "$pages/*.3";

run('rm', '-rf', $out);
run('mkdir', '-p', $out);
run('cp', "$here/style.css", $out);
write_file($_, page($page_of{$_}, \%page_of)) for keys %page_of;
write_file('index.html', <<"END");
<!DOCTYPE html>
<html lang="en">
<head>
$viewport
<meta charset="utf-8">
<link rel="stylesheet" href="style.css">
<title>sqlock manual</title>
</head>
<body class="index">
<h1>sqlock manual</h1>
<p>Locks kept in the SQL database an application already has.</p>
@{[list('Start here', @start)]}
@{[list('Background', @background)]}
@{[run('perl', "$here/pages.pl", '--html-index')]}
</body>
</html>
END
