/*
 * A retry is never overtaken by its original (DESIGN R6), wherever the original lingers: the
 * host's own TCP queue on a link that drops and heals, a socket that is not read, a reactor that stalls
 * with the command parsed, a forwarder, the forwarding link, the backend.
 *
 * One write, A, on path 1; path 2 is quick and leads to the same owner. Time goes in ticks of TICK
 * ms. The bounds come from gateway/src/base/limits.h as -D; for those it lacks tests/model/run has
 * a value. "No longer than" includes the limit, so delays that add up to exactly 5 s are too long.
 */

/* Rules that can be broken, one at a time. */
#define NOTHING 0
#define DISCARD_BOUND 1  /* what came over a silent connection is executed whenever it comes */
#define STALL_BOUND 2    /* sockets are read after a stall, however long it was */
#define WATCHDOG 3       /* a stalled process is never killed */
#define TOKEN 4          /* the owner executes what a forwarder sends, however old its token */
#define TOKEN_FIRST 5    /* the token is taken when the command is sent on, not when it is parsed */
#define RANGE_HOLD 6     /* R5: a command does not hold its range until the backend completed it */
#define HOLD_FIRST 7     /* looks at the clock, then takes the range: a stall fits in between */
#define RESET_DELAY 9    /* the host changes path at once when its connection is reset */
#define PING_BOUND 10    /* pings too late */
#define ANSWER_BOUND 11  /* waits too long for the answer to a ping */
#define CLOSE_BOUND 12   /* a connection whose host doesn't answer pings stays open */
#define SILENCE 13       /* that, and what comes over it is executed: 12 and 1 */

byte broken;
bool forwarded; /* path 1 leads to a forwarder, not to the owner */
bool one_outage; /* the mildest world: one outage, both ways, and what heals heals at once */
bool hearsay;    /* silence is counted from when the host was heard, as the gateway does */
bool ring;      /* a turn that took too long hands nothing to the kernel (all but rbd and the page cache) */
bool healthy;   /* nothing goes wrong: is anything discarded that need not be? */
#define KEPT(rule) (broken != rule)

/* In ticks, rounded up: no bound becomes shorter than it is. */
#define TICKS(ms) (((ms) + TICK - 1) / TICK)
#define FOREVER 100
#define DISCARD (KEPT(DISCARD_BOUND) && KEPT(SILENCE) -> TICKS(DISCARD_SILENCE) : FOREVER)
#define STALL (KEPT(STALL_BOUND) -> TICKS(STALL_LIMIT) : FOREVER)
#define CLOSE (KEPT(CLOSE_BOUND) && KEPT(SILENCE) && !hearsay -> \
               TICKS(NOP_SILENCE + NOP_TIMEOUT) : FOREVER)
#define WATCH (KEPT(WATCHDOG) -> TICKS(WATCHDOG_LIMIT) : FOREVER)
#define TOKEN_AGE (KEPT(TOKEN) -> TICKS(TOKEN_LIFE) : FOREVER)
#define RESET (KEPT(RESET_DELAY) -> TICKS(RESET_GIVES_UP) : 0)
#define PING (TICKS(NOP_SILENCE) + (KEPT(PING_BOUND) -> 0 : 1))
#define ANSWER (TICKS(NOP_TIMEOUT) + (KEPT(ANSWER_BOUND) -> 0 : 1))
#define GIVES_UP TICKS(HOST_GIVES_UP)
#define HORIZON (GIVES_UP + 6)

byte now;
bool up = true;     /* host to gateway; drops and heals */
bool down = true;   /* gateway to host, for itself: links fail one way, too */
byte changes = 3;   /* of the links that may still come */

/* The host. Times of 0 are the start: just heard, just looped. */
byte host_heard;    /* when it last heard from the gateway: the start of its silence */
bool retried;
bool newer;         /* the retry, or a write after it, is done and acknowledged */

/* Something else it sends before A. It matters to hearsay only: A brings a later proof with it. */
mtype = { nowhere, tcp_queue, socket };
mtype chatter = nowhere;

/* The gateway of path 1. */
byte looped;        /* the clock of this turn of the reactor, read once a turn */
byte heard;         /* when it last heard the host */
byte proof;         /* when it sent the last thing the host is known to have heard */
bool closed;        /* connection closed or process killed: the host sees a reset */
byte reset_at;

/* Where A is. */
mtype = { unsent, queued, unread, parsed, ready, forwarding, held, checked, submitted, applied,
          dropped };
mtype a = unsent;
byte a_proof; /* the host_heard that it confirms (ExpStatSN) */
byte a_token;

hidden byte original_never_lands_after_its_retry;
hidden byte retry_is_answered;
hidden byte healthy_session_is_never_discarded;

#define FRESH(clock)                                                                      \
  (hearsay -> clock <= heard + DISCARD : clock <= proof + DISCARD)

/* Nothing is left to see once A is at its end, or will never be sent. */
#define OVER (a == applied || a == dropped || (retried && a == unsent))

inline drop() {
  a = dropped;
  a_token = 0;
  a_proof = 0
}

inline close() {
  closed = true;
  reset_at = now;
  looped = 0;
  heard = 0;
  proof = 0;
  if
  :: a == unread || a == parsed || a == ready || a == checked || (a == held && !forwarded) ->
    drop()
  :: else
  fi;
  if
  :: chatter == socket -> chatter = nowhere
  :: else
  fi
}

proctype host() {
  do
  /* Sends whatever it likes until it gives the path up. */
  :: d_step { !retried && chatter == nowhere && a == unsent && hearsay -> chatter = tcp_queue }
  :: d_step { !retried && a == unsent ->
       a = queued;
       a_proof = (hearsay -> 0 : host_heard) }
  :: d_step { !retried && a != unsent &&
              (now >= host_heard + GIVES_UP ||
               (closed && now >= reset_at + RESET)) ->
       retried = true }
  /* Path 2 is quick, but an overlapping command that holds its range comes first. */
  :: d_step { retried && !newer && (!KEPT(RANGE_HOLD) || (a != held && a != submitted)) ->
       newer = true }
  od
}

proctype network() {
  do
  :: d_step { !OVER && changes > 0 && !one_outage -> changes--; up = !up }
  :: d_step { !OVER && changes > 0 && !one_outage -> changes--; down = !down }
  :: d_step { !OVER && changes > 1 && one_outage -> changes--; up = !up; down = up }
  /* TCP: in order; what is queued gets through when the link heals, even if the host has closed. */
  :: d_step { up && chatter == tcp_queue -> chatter = (closed -> nowhere : socket) }
  :: d_step { up && a == queued && chatter != tcp_queue ->
       if
       :: closed -> drop()
       :: else -> a = unread
       fi }
  /* The gateway says something: an answer, a ping. */
  :: d_step { down && !closed && !retried && host_heard < now && now < 3 -> host_heard = now }
  od
}

proctype gateway() {
  do
  /* A turn of the reactor: looks at the clock, reads everything. */
  :: d_step {
       !closed && !OVER && a != parsed && a != ready && a != checked && (forwarded || a != held) &&
       (looped < now || chatter == socket || a == unread) ->
       if
       :: now > looped + STALL -> close()
       /* No answer to a ping. At the latest: it may know less of what the host has heard. */
       :: now > host_heard + CLOSE -> close()
       :: else ->
         looped = now;
         if
         :: one_outage && down && !retried -> host_heard = now
         :: else
         fi;
         if
         :: chatter == socket ->
           chatter = nowhere;
           heard = (FRESH(looped) -> looped : heard)
         :: else
         fi;
         if
         :: a == unread ->
           a = parsed;
           proof = a_proof;
           a_proof = 0
         :: else
         fi
       fi
     }
  :: d_step { !closed && now > looped + WATCH -> close() }
  /* Direct: takes the range, looks at the clock, submits. A stall fits between any two of these. */
  :: d_step { !closed && !forwarded && a == parsed && KEPT(HOLD_FIRST) -> a = held }
  :: d_step { !closed && !forwarded && a == parsed && !KEPT(HOLD_FIRST) ->
       if
       :: FRESH(now) -> a = checked
       :: else -> close()
       fi }
  :: d_step { !closed && !forwarded && a == checked -> a = submitted }
  :: d_step { !closed && !forwarded && a == held ->
       if
       :: FRESH(now) && (!ring || now <= looped + STALL) -> a = submitted
       :: else -> close()
       fi }
  /* Forwarder: takes the token, looks at the clock, sends. */
  :: d_step { !closed && forwarded && a == parsed && KEPT(TOKEN_FIRST) ->
       a_token = now; /* the latest it can be */
       a = ready }
  :: d_step { !closed && forwarded && a == ready ->
       if
       :: FRESH(now) -> a = forwarding
       :: else -> close()
       fi }
  :: d_step { !closed && forwarded && a == parsed && !KEPT(TOKEN_FIRST) ->
       if
       :: FRESH(now) -> a = checked
       :: else -> close()
       fi }
  :: d_step { !closed && forwarded && a == checked ->
       a_token = now;
       a = forwarding }
  /* A process can be killed at any time; what it has sent on is on its way. */
  :: d_step { !closed && forwarded -> close() }
  od
}

/* Gets forwarded commands, late as they may be; its turns come when they like. */
proctype owner() {
  do
  :: d_step { a == forwarding -> a = held }
  :: d_step { forwarded && a == held ->
       if
       :: now <= a_token + TOKEN_AGE -> a = submitted
       :: else -> drop()
       fi }
  :: d_step { a == submitted ->
       original_never_lands_after_its_retry = !newer;
       assert(original_never_lands_after_its_retry);
       a = applied }
  od
}

/* Time passes whatever happens, but not past what a watchdog looks at. */
proctype clock() {
  do
  :: d_step { !OVER && now < HORIZON && (closed || now <= looped + WATCH) &&
              !(one_outage && up && (chatter == tcp_queue || a == queued)) ->
       now++;
       retry_is_answered = !(retried && !newer && !closed && a == held && !forwarded &&
                             now > looped + TICKS(WATCHDOG_LIMIT) + 1);
       assert(retry_is_answered) }
  od
}

/* The pings of a session on which nothing else is said, with answers as slow as they may be. */
proctype pings() {
  byte pinged;
  bool waiting;
  do
  :: d_step { !waiting && now == proof + PING -> waiting = true; pinged = now }
  :: d_step { waiting -> waiting = false; proof = pinged; heard = now }
  :: d_step { now < HORIZON && !(!waiting && now >= proof + PING) &&
              !(waiting && now >= pinged + ANSWER) -> now++ }
  :: d_step { true ->
       healthy_session_is_never_discarded = (now <= proof + TICKS(DISCARD_SILENCE));
       assert(healthy_session_is_never_discarded) }
  od
}

/* Said when the search starts, as in ownership.pml. */
init {
  atomic {
#ifdef BROKEN
    broken = BROKEN; forwarded = FORWARDED; one_outage = ONE_OUTAGE;
    hearsay = HEARSAY; healthy = HEALTHY; ring = RING;
#else
    c_code {
      now.broken = atoi(getenv("BROKEN"));
      now.forwarded = atoi(getenv("FORWARDED"));
      now.one_outage = atoi(getenv("ONE_OUTAGE"));
      now.hearsay = atoi(getenv("HEARSAY"));
      now.healthy = atoi(getenv("HEALTHY"));
      now.ring = atoi(getenv("RING"));
    };
    skip; skip; skip; skip;
#endif
    if
    :: healthy -> run pings()
    :: else ->
      run host();
      run network();
      run gateway();
      run owner();
      run clock()
    fi
  }
}
