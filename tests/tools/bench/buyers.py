#!/usr/bin/env python3
"""Buy at the example stock_seller: buyers.py SOCKET ITEM PROCESSES SECONDS

Each process buys one piece after the other, each by an order of its own, and
asks again at the end for its first one.  Prints how many were sold, and how
many a second.
"""
import os
import socket
import sys
import time
import uuid


def buy(place, item, seconds):
    """Return how many were sold; exit if an answer is wrong."""
    buyer = uuid.uuid4()
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(60)
    link.connect(place)
    answers = link.makefile("r")
    end = time.monotonic() + seconds
    sold = 0
    first = None
    while sold == 0 or time.monotonic() < end:
        link.sendall(f"{buyer}/{sold} {item} 1\n".encode())
        answer = answers.readline()
        if answer.split(" ")[0] != "0":
            sys.exit(f"order {sold}: {answer!r}")
        first = first or answer
        sold += 1
    link.sendall(f"{buyer}/0 {item} 1\n".encode())
    if answers.readline() != first:
        sys.exit("the first order was carried out twice")
    return sold


def main():
    place, item, processes, seconds = sys.argv[1:]
    pipe, end = os.pipe()
    began = time.monotonic()
    for _ in range(int(processes)):
        if os.fork() == 0:
            sold = buy(place, item, float(seconds))
            os.write(end, f"{sold}\n".encode())
            os._exit(0)
    os.close(end)
    counts = [int(line) for line in os.fdopen(pipe)]
    if len(counts) != int(processes):
        sys.exit(1)
    rate = sum(counts) / (time.monotonic() - began)
    print(f"{sum(counts)} sold, {rate:.0f} a second")


main()
