#!/usr/bin/env bash
# places.sh: after `make install`, tell the loader of the library where that is
# up to us, and print where everything is.
#
# The loader and pkg-config look into folders of their own only, the loader into
# its cache of them; what another folder takes is said.
#
# Environment: DESTDIR BINDIR LIBDIR INCLUDEDIR DATADIR DOCDIR MANDIR SONAME
#     VERSION PKG_CONFIG LDCONFIG; SILENT=1 prints nothing
set -u
PATH=$PATH:/usr/sbin:/sbin

is_searched() {
    $LDCONFIG -N -X -v 2>/dev/null | sed -n 's/^\(\/[^:]*\):.*/\1/p' |
        xargs -r readlink -f | grep -qxF "$(readlink -f "$LIBDIR")"
}

path='' hint=''
if [ -z "$DESTDIR" ]; then
    case ":$("$PKG_CONFIG" --variable=pc_path pkg-config):" in
    *:$LIBDIR/pkgconfig:*) ;;
    *) path="; found with PKG_CONFIG_PATH=$LIBDIR/pkgconfig" ;;
    esac
    if ! is_searched; then
        hint="; found with LD_LIBRARY_PATH=$LIBDIR"
    elif [ "$(id -u)" -ne 0 ] || ! $LDCONFIG; then
        hint='; found once root has run ldconfig'
    else
        hint=' (ldconfig has been run)'
    fi
fi
[ -z "${SILENT:-}" ] || exit 0
cat <<END
sqlock $VERSION is installed${DESTDIR:+ below $DESTDIR}:
  command   $BINDIR/sqlock
  library   $LIBDIR/$SONAME$hint
  headers   $INCLUDEDIR
  flags     $LIBDIR/pkgconfig/sqlock.pc$path
  CMake     $LIBDIR/cmake/sqlock
  schemas   $DATADIR/sqlock/sql
  scripts   $DATADIR/sqlock/migrate.sh
  examples  $DOCDIR/examples
  manuals   $MANDIR
END
