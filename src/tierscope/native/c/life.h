/* What the parts of a recorded process share among themselves. */
#ifndef TIERSCOPE_LIFE_H
#define TIERSCOPE_LIFE_H

#include "process.h"
#include "rereads.h"

enum { TS_FOLDER = 3000 };

/* Shared by the processes of a rank: its epoch (0 means 1), its clock and, to find epochs by re-reads, what it read. */
typedef struct {
    _Atomic int32_t epoch;
    uint32_t unused[15];
    ts_clock clock;
    ts_rereads rereads[]; /* one, with TS_OPTION_REREADS */
} rank_page;
_Static_assert(offsetof(rank_page, rereads) == 65728, "where re-reads are is part of the file format");

/* What a forked child must not inherit; the kernel wipes it there. */
typedef struct {
    _Atomic uint64_t born;    /* when this process made its state file; 0: not yet */
    _Atomic uint32_t locked;  /* somebody adds a chunk */
    _Atomic uint32_t refused; /* no state file can be made: stop trying */
    char *base;               /* of the mapped state file */
    ts_head *head;
    rank_page *rank;
    ts_epoch *epoch; /* the one that was marked last */
    uint32_t lanes;
    _Atomic uint32_t blocks;    /* of the .ops file */
    _Atomic uint64_t lost_ops;  /* before there was a state file to note them in */
    uint64_t mapped;            /* bytes of the state file that can be used */
    uint64_t signals;           /* of the thread that holds the lock: its signal mask before */
    ts_clock *clock;      /* of the rank; NULL: this process has one of its own */
    ts_wall *wall;        /* of either */
    ts_wall own_wall;
    ts_identity identity; /* in the rank's clock */
    rank_page *peeked;    /* the rank's page as found before there was a state file; NULL: there was none, or nobody looked */
    _Atomic uint32_t has_peeked, has_moved; /* has_moved: that was another rank's */
    char rank_name[80];   /* whose page it is */
    _Atomic uint64_t loans[TS_LOANS / 64]; /* a bit for each that is in use */
    char stem[TS_FOLDER + 200]; /* path of the state file without .state */
    char path[TS_FOLDER + 300], other[TS_FOLDER + 300]; /* for who holds the lock: the host's stacks may be small */
} life_page;

extern life_page *ts_life;
extern char ts_folder[TS_FOLDER + 1];
extern rank_page ts_private_rank; /* when the shared one cannot be had */

/* Shared by all processes, and mapped while they may still open it: what those lost that could not make a state file. */
typedef struct {
    _Atomic uint64_t processes, ops;
} lost_page;
extern lost_page *ts_lost; /* NULL: there is none */

/* config.c: NULL when there is none or it makes no sense. */
const ts_config *ts_read_config(void);
ts_slot *ts_open_board(const ts_config *config);
lost_page *ts_open_lost(void);
bool ts_wants_emulation(void);

/* process.c: make sure that this process has a state file; 0: it cannot have one. */
uint64_t ts_be_alive(void);
int32_t ts_current_epoch(void);

/* Chunks are added with the lock held: never on the way of an ordinary operation. */
bool ts_lock(void);
void ts_unlock(void);
void *ts_add_chunk(size_t bytes);
void ts_publish_chunk(size_t bytes);

/* usage.c */
void ts_begin_usage(ts_head *head, uint64_t now);
void ts_note_usage(ts_head *head, uint64_t now);

/* list.c */
void ts_append_row(ts_thread *self, const ts_lane *lane, ts_span span, uint64_t end, const ts_done *done);

#endif
