#!/bin/sh
# The rules of kvcast/policy.h; add what you know of your router on a log of your own.
"${KVCAST:-kvcast}" policy check ./@NAME@.so
