#!/bin/sh
# The rules of kvcast/policy.h; add what you know of your order on a log of your own.
"${KVCAST:-kvcast}" policy check ./@NAME@.so
