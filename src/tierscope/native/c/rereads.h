/* Epochs of a program that marks none, found by what it reads again (docs/mechanisms.md).

   A unit is a read by where it begins in which file (or a mapping). The page keeps units in a table of a fixed size: when it is half full, half
   of them are forgotten, by their hash, and half of what is read is no longer looked at. All processes of a rank on a host
   share the page. An epoch ends where reads no longer meet units that are new to it. What is found here is a guess that whoever collects the
   records confirms or drops: lanes carry a generation, and the page says with which generations epochs begin. */
#ifndef TIERSCOPE_REREADS_H
#define TIERSCOPE_REREADS_H

#include <stdatomic.h>
#include <stdint.h>

enum { TS_REREAD_SLOTS = 1 << 14, TS_REREAD_EPOCHS = 256, TS_REREAD_PERCENT = 90 }; /* so much of all units makes an epoch whole */
enum { TS_GENERATION = 1 << 30 };                                 /* added to a generation, in place of a lane's epoch; the first has none */
enum { TS_NO_PAGE = INT32_MAX };                                  /* the epoch of lanes whose process could not have the page */
enum { TS_GAVE_UP_LOCK = 1, TS_GAVE_UP_EPOCHS, TS_GAVE_UP_CLOCK, TS_MARKED_INSTEAD }; /* why nothing more is looked at */

typedef struct {
    uint64_t key;  /* 0: free */
    uint32_t last; /* when it was last read, by the page's clock */
    uint32_t reads : 16, passes : 10, size : 6; /* how often, and in how many epochs; size: bits of the largest read's bytes */
} ts_unit;

typedef struct {
    _Atomic uint32_t locked, gave_up;
    _Atomic uint32_t mask;   /* units whose key has one of these bits are not looked at */
    _Atomic uint32_t nearly; /* a thread read one of its last two units again: that never counts */
    uint32_t units;          /* in the table */
    uint32_t clock;          /* reads that were looked at */
    uint32_t epoch_start;    /* by the clock */
    uint32_t covered;        /* units that were read in this epoch */
    uint32_t unheard, first_unheard; /* those of them that no epoch had read before, and when the first came */
    uint32_t run, run_start; /* reads in a row that met nothing new to the epoch */
    uint32_t longest_run;    /* after which something new came */
    uint32_t latest;         /* how many reads late the latest boundary was */
    uint32_t generation, boundaries;
    uint32_t boundary[TS_REREAD_EPOCHS]; /* the generation with which each epoch but the first begins */
    ts_unit table[TS_REREAD_SLOTS];
} ts_rereads;

_Static_assert(sizeof(ts_unit) == 16 && sizeof(ts_rereads) == 64 + 4 * TS_REREAD_EPOCHS + 16 * TS_REREAD_SLOTS, "the page is part of the file format");

#endif
