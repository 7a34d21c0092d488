/*
 * Who may write a volume, when gateways die, freeze, are cut off and come back (DESIGN R1..R5, R7).
 *
 * The transitions are those of controlplane/internal/model/ownership.go, under the same names.
 * Around them: the leader, a deposed leader, gateways with incarnations, the backend, one host.
 * LOCAL chooses between an rbd pool (fence: blocklist) and a local one (fence: the lock). README.md
 * maps every part to what it stands for. With BROKEN set to a rule's number that rule is not kept,
 * and the search has to find out.
 */

#ifndef GATEWAYS
#define GATEWAYS 2
#endif
#ifndef WRITES
#define WRITES 2
#endif

/* Rules that can be broken, one at a time. */
#define NOTHING 0
#define EPOCH_CAS 1            /* R1: a deposed leader writes blindly */
#define BLOCKLIST 2            /* R2 rbd: the old owner's client is not blocklisted */
#define MAP_WAIT 3             /* R2 rbd: the opener does not wait for the OSD map */
#define FENCE_FIRST 4          /* R2 rbd: given away while the fence is still being set */
#define LOCK_FIRST 5           /* R2 local: serves without the lock */
#define LOCK_OUTLIVES 6        /* R2 local: the lock dies with the process, its I/O does not */
#define ACK_ONLY_OWNED 7       /* R5: what was in flight is acknowledged after the fence */
#define DRAIN_FIRST 8          /* R7: reported as released before it is drained */
#define RELEASE_IS_FINAL 9     /* a released volume is opened again in the same epoch */
#define NEVER_LIFT 10          /* R4: a fenced gateway lifts its own blocklisting */
#define ORPHANS_FIND_OWNERS 11 /* an orphan gets no owner */
#define RECORD_WINS 12         /* R2 local: opens in an epoch older than the one recorded */
#define OSD_HAS_MAP 13         /* R2 rbd: serves before the volume's OSDs know the blocklist */

byte broken;
#define KEPT(rule) (broken != rule)

/* A reference is a gateway and its incarnation (GatewayRef); 0 is none. */
#define REF(g) ((g) * 4 + incarnation[g])
#define WHO(r) ((r) >> 2)
#define BIT(r) (1 << (r))
#define LAST_INCARNATION 3

/* --- ownership.go */

mtype = { Unowned, Acquiring, Opening, Owned, Moving, Fencing, Orphaned };

typedef Ownership {
  mtype state = Unowned;
  byte epoch;
  byte owner;
  byte next;
  byte fence
};

hidden byte legal; /* what the last transition returned */

inline become(o, to, who, then, shut) {
  /* In this order: who may be the old next, and shut the old owner. */
  o.state = to;
  o.fence = shut;
  o.owner = who;
  o.next = then
}

inline epochFor(o, r) {
  o.epoch++;
  become(o, Opening, r, 0, 0)
}

inline Assign(o, r) {
  legal = r != 0 && (o.state == Unowned || o.state == Orphaned);
  if
  :: legal -> epochFor(o, r)
  :: else
  fi
}

inline Acquire(o, r) {
  legal = r != 0 && r != o.owner && o.state != Moving && o.state != Fencing;
  if
  :: legal -> become(o, Acquiring, o.owner, r, 0)
  :: else
  fi
}

inline Locked(o, r) {
  legal = o.state == Acquiring && r == o.next;
  if
  :: legal -> epochFor(o, r)
  :: else
  fi
}

inline Serving(o, r, e) {
  legal = o.state == Opening && r == o.owner && e == o.epoch;
  if
  :: legal -> o.state = Owned
  :: else
  fi
}

inline Move(o, r) {
  legal = o.state == Owned && r != o.owner;
  if
  :: legal -> become(o, Moving, o.owner, r, 0)
  :: else
  fi
}

inline CancelMove(o) {
  legal = o.state == Moving;
  if
  :: legal -> become(o, Owned, o.owner, 0, 0)
  :: else
  fi
}

inline Released(o, r, e) {
  legal = r == o.owner && e == o.epoch &&
          (o.state == Moving || o.state == Opening || o.state == Owned);
  if
  :: legal && o.state == Moving && o.next != 0 -> epochFor(o, o.next)
  :: legal && o.state == Moving && o.next == 0 -> become(o, Unowned, 0, 0, 0)
  :: legal && o.state != Moving -> become(o, Orphaned, 0, 0, 0)
  :: else
  fi
}

inline BeginFence(o) {
  legal = o.owner != 0 && (o.state == Opening || o.state == Owned || o.state == Moving);
  if
  :: legal ->
    o.epoch++;
    become(o, Fencing, 0, 0, o.owner)
  :: else
  fi
}

inline Fenced(o, r) {
  legal = o.state == Fencing && r == o.fence;
  if
  :: legal -> become(o, Orphaned, 0, 0, 0)
  :: else
  fi
}

inline Abandon(o) {
  legal = o.state == Acquiring;
  if
  :: legal && o.owner == 0 -> become(o, Orphaned, 0, 0, 0)
  :: legal && o.owner != 0 -> become(o, Owned, o.owner, 0, 0)
  :: else
  fi
}

inline Retire(o) {
  legal = o.state == Orphaned;
  if
  :: legal -> become(o, Unowned, 0, 0, 0)
  :: else
  fi
}

/* --- the world */

Ownership etcd;
byte version = 1; /* of the key: every change is a compare-and-swap on it (R1) */

mtype = { up, frozen, down };     /* a process */
mtype = { idle, serves, drains }; /* a gateway and the volume */
mtype = { none, open, release, keep, lock_it }; /* what the stream says it shall do */

mtype life[GATEWAYS] = up;
bool cut[GATEWAYS];            /* from the control plane */
byte incarnation[GATEWAYS] = 1;
short suspected;               /* references that a replica saw dead, frozen or cut, rightly or not */
mtype volume[GATEWAYS] = idle;
byte serves_in[GATEWAYS];      /* the epoch it opened in */
byte released_in[GATEWAYS];    /* the last epoch it released: never opened again */

/* The desired state as last heard; it may be as old as it likes. */
mtype role[GATEWAYS] = none;
byte role_epoch[GATEWAYS];
byte heard[GATEWAYS];          /* its version, while there is a role */
bool answered[GATEWAYS];           /* this version has been answered */

mtype = { is_serving, is_released, is_locked, is_fenced };
typedef Line { chan reports = [2] of { mtype, byte, byte } };
Line from[GATEWAYS]; /* observed state on its way: kind, reference, epoch */

/* One command at a time per gateway, and what its dead predecessor left in flight. */
mtype = { no_op, in_flight, landed, refused };
mtype op[GATEWAYS] = no_op;
byte op_value[GATEWAYS];
mtype ghost[GATEWAYS] = no_op;
byte ghost_value[GATEWAYS];
byte ghost_epoch[GATEWAYS];
byte ghost_ref[GATEWAYS];

/* The backend. */
byte disk;        /* the value of the write that landed last */
byte disk_epoch;  /* the highest epoch that did any I/O, and who did it */
byte disk_ref;
#ifdef LOCAL
byte lock;        /* whose open file holds the flock */
byte recorded;    /* the epoch written beside the data by the last opener */
#else
short blocklist;  /* as the monitors have it */
short osd_map;    /* as the volume's OSD has it */
short ghost_map[GATEWAYS];
short map[GATEWAYS]; /* as the gateway's client had it when it opened */
byte fenced_in;   /* the epoch whose fence has been set */
#endif

/* The host writes 1, 2, ... one after the other; asked is the gateway (+1) with the command. */
byte asked;
byte asked_incarnation;
byte value = 1;
byte acknowledged;

byte faults; /* crashes, freezes and cuts that may still come, in total */
bool patient = true; /* looks at what has become of everything when nothing more can happen */
bool rivals; /* there is a deposed leader who does not know it */
byte plans;  /* moves, cancelled moves and retirements, likewise */
bool calm; /* no more faults come */

#define CONNECTED(g) (life[g] == up && !cut[g])
#define SUSPECT(r) ((r) != 0 && (suspected & BIT(r)))
#define FIT(g) (CONNECTED(g) && !SUSPECT(REF(g)))

/* --- the control plane (orchestrator): what a leader does with the volume as it sees it */


#define FOR_EACH(o, what) what(o, 0) what(o, 1) FOR_THE_THIRD(o, what)
#if GATEWAYS > 2
#define FOR_THE_THIRD(o, what) what(o, 2)
#else
#define FOR_THE_THIRD(o, what)
#endif

#ifdef LOCAL
#define GIVE(o, g)                                                                        \
  :: (o.state == Unowned || o.state == Orphaned ||                                        \
      ((o.state == Opening || o.state == Owned) && SUSPECT(o.owner)) ||                   \
      (o.state == Acquiring && SUSPECT(o.next))) &&                                       \
     FIT(g) && REF(g) != o.owner -> Acquire(o, REF(g))
#define SHUT_OUT(o)                                                                       \
  :: o.state == Moving && SUSPECT(o.owner) -> CancelMove(o)                               \
  :: o.state == Acquiring && SUSPECT(o.next) -> Abandon(o)
#else
#define GIVE(o, g)                                                                        \
  :: (o.state == Unowned || (o.state == Orphaned && KEPT(ORPHANS_FIND_OWNERS))) &&        \
     FIT(g) -> Assign(o, REF(g))
#define SHUT_OUT(o)                                                                       \
  :: (o.state == Opening || o.state == Owned || o.state == Moving) && SUSPECT(o.owner) -> \
     BeginFence(o)                                                                        \
  :: !KEPT(FENCE_FIRST) && o.state == Fencing -> Fenced(o, o.fence)
#endif

#define PLAN(o, g)                                                                        \
  :: plans > 0 && o.state == Owned && FIT(g) && REF(g) != o.owner ->                      \
     plans--; Move(o, REF(g))
#define PLAN_NOBODY(o)                                                                    \
  :: plans > 0 && o.state == Owned -> plans--; Move(o, 0)                                 \
  :: plans > 0 && o.state == Moving -> plans--; CancelMove(o)                             \
  :: plans > 0 && o.state == Orphaned -> plans--; Retire(o)

#define TAKE(o, g)                                                                        \
  :: from[g].reports?is_serving, r, e -> Serving(o, r, e)                                 \
  :: from[g].reports?is_released, r, e -> Released(o, r, e)                               \
  :: from[g].reports?is_locked, r, e -> Locked(o, r)                                      \
  :: from[g].reports?is_fenced, r, e -> Fenced(o, r)

/* A deposed leader got the same reports; reading them there takes none from the leader. */
#define COPY(o, g)                                                                        \
  :: from[g].reports?<is_serving, r, e> -> Serving(o, r, e)                               \
  :: from[g].reports?<is_released, r, e> -> Released(o, r, e)                             \
  :: from[g].reports?<is_locked, r, e> -> Locked(o, r)                                    \
  :: from[g].reports?<is_fenced, r, e> -> Fenced(o, r)

#define DECIDE(o)                                                                         \
  FOR_EACH(o, GIVE) SHUT_OUT(o) FOR_EACH(o, PLAN) PLAN_NOBODY(o)

/* Reads, decides and stores in one step: what compare-and-swap makes of it, where it succeeds. */
proctype leader() {
  byte r;
  byte e;
  do
  :: atomic {
       if
       DECIDE(etcd)
       FOR_EACH(etcd, TAKE)
       fi;
       if
       :: legal -> version++
       :: else
       fi;
       r = 0;
       e = 0
     }
  od
}

/* Read before it was deposed, decides and stores at any time after. */
proctype deposed() {
  byte r;
  byte e;
  byte seen;
  Ownership old;
  atomic {
    seen = version;
    old.epoch = etcd.epoch;
    become(old, etcd.state, etcd.owner, etcd.next, etcd.fence)
  }
  atomic {
    if
    DECIDE(old)
    FOR_EACH(old, COPY)
    fi;
    if
    :: legal && (seen == version || !KEPT(EPOCH_CAS)) ->
      etcd.epoch = old.epoch;
      become(etcd, old.state, old.owner, old.next, old.fence);
      version++
    :: else
    fi;
    r = 0;
    e = 0;
    seen = 0;
    old.epoch = 0;
    become(old, 0, 0, 0, 0)
  }
}

/* --- a gateway */

#define ROLE(g)                                                                           \
  (etcd.owner == REF(g) && (etcd.state == Opening || etcd.state == Owned) -> open :       \
  (etcd.owner == REF(g) && etcd.state == Moving -> release :                              \
  (etcd.owner == REF(g) && etcd.state == Acquiring -> keep :                              \
  (etcd.next == REF(g) && etcd.state == Acquiring -> lock_it : none))))
#define NEWS(g)                                                                           \
  (ROLE(g) != role[g] || (role[g] != none && heard[g] != version))

inline hear(g) {
  role[g] = ROLE(g);
  answered[g] = false;
  role_epoch[g] = (role[g] == none -> 0 : etcd.epoch);
  heard[g] = (role[g] == none -> 0 : version)
}

inline tell(g, kind) {
  from[g].reports!kind, REF(g), role_epoch[g];
  answered[g] = true
}

/* A request carries the map its client had; whichever OSD takes it gets that map first. */
#ifdef LOCAL
#define SPREAD(map) skip
#define KEEP_MAP(g) skip
#else
#define SPREAD(map) osd_map = osd_map | map
#define KEEP_MAP(g) ghost_map[g] = map[g]
#endif

/* What was submitted goes on without its gateway. */
inline leave_in_flight(g) {
  if
  :: op[g] == in_flight ->
    ghost[g] = in_flight;
    ghost_value[g] = op_value[g];
    ghost_epoch[g] = serves_in[g];
    ghost_ref[g] = REF(g);
    KEEP_MAP(g)
  :: else
  fi;
  op[g] = no_op
}

inline close_volume(g) {
  volume[g] = idle;
  released_in[g] = serves_in[g];
  serves_in[g] = 0
}

inline forget_role(g) {
  role[g] = none;
  role_epoch[g] = 0;
  heard[g] = 0;
  answered[g] = false
}

inline die(g) {
  suspected = suspected | BIT(REF(g));
  leave_in_flight(g);
#ifdef LOCAL
  if
  :: lock == REF(g) && (ghost[g] == no_op || !KEPT(LOCK_OUTLIVES)) -> lock = 0
  :: else
  fi;
#endif
  forget_role(g);
  life[g] = down;
  volume[g] = idle;
  serves_in[g] = 0;
  released_in[g] = 0
}

/* Under a new incarnation, if the bounds of the search allow another. */
inline come_back(g) {
  suspected = suspected | BIT(REF(g));
  if
  :: incarnation[g] < LAST_INCARNATION ->
    incarnation[g]++;
    life[g] = up
  :: else -> life[g] = down
  fi;
  forget_role(g);
  released_in[g] = 0
}

hidden byte acknowledged_write_is_on_disk;

inline acknowledge(g) {
  if
  :: asked == g + 1 && asked_incarnation == incarnation[g] ->
    acknowledged_write_is_on_disk = (disk >= op_value[g]);
    assert(acknowledged_write_is_on_disk);
    acknowledged = op_value[g];
    asked = 0;
    asked_incarnation = 0;
    value++
  :: else
  fi;
  op[g] = no_op;
  op_value[g] = 0
}

/* R4: forgets its queue, drops its nexuses (volume is idle: the host sees it), is a new client. */
inline fence_itself(g) {
  if
  :: !KEPT(ACK_ONLY_OWNED) && op[g] != no_op ->
    leave_in_flight(g);
    acknowledge(g)
  :: else -> leave_in_flight(g)
  fi;
  close_volume(g);
#ifndef LOCAL
  come_back(g)
#endif
}

#ifdef LOCAL
#define MAY_OPEN(g)                                                                       \
  ((lock == REF(g) || lock == 0 || !KEPT(LOCK_FIRST)) &&                                  \
   (recorded <= role_epoch[g] || !KEPT(RECORD_WINS)))
/* Its own I/O has to end before it releases the lock. */
#define MAY_LEAVE(g) (op[g] != in_flight)
/* Who wants the lock on newer orders than the holder's; older ones are refused. */
#define WANTS(g) (life[g] == up && (role[g] == lock_it || (role[g] == open && \
  volume[g] == idle && released_in[g] != role_epoch[g])))
#define OUTRANKED(g) (WANTS(1 - g) && heard[1 - g] >= heard[g])
#else
#define MAY_LEAVE(g) (ghost[g] == no_op)
#define MAY_OPEN(g) (!(blocklist & BIT(REF(g))))
#endif

proctype gateway(byte me) {
  do
  :: d_step { CONNECTED(me) && NEWS(me) -> hear(me) }

  /* Opens what it owns, once an epoch. */
  :: d_step {
       life[me] == up && volume[me] == idle && role[me] == open && MAY_OPEN(me) &&
       op[me] == no_op && (released_in[me] != role_epoch[me] || !KEPT(RELEASE_IS_FINAL)) ->
#ifdef LOCAL
       if
       :: lock == 0 -> lock = REF(me)
       :: else
       fi;
       recorded = role_epoch[me];
#else
       if
       :: KEPT(MAP_WAIT) -> map[me] = blocklist
       :: else
       fi;
       if
       :: KEPT(OSD_HAS_MAP) -> SPREAD(map[me])
       :: else
       fi;
#endif
       volume[me] = serves;
       serves_in[me] = role_epoch[me]
     }
  :: d_step { CONNECTED(me) && volume[me] == serves && role[me] == open && !answered[me] &&
              serves_in[me] == role_epoch[me] && nfull(from[me].reports) ->
       tell(me, is_serving) }

  /* R7: holds new commands, drains, closes; goes on where the move was cancelled before. */
  :: d_step { life[me] == up && volume[me] == serves && role[me] == release ->
       volume[me] = drains }
  :: d_step { life[me] == up && volume[me] == drains && role[me] == open &&
              serves_in[me] == role_epoch[me] -> volume[me] = serves }
  :: d_step {
       life[me] == up && volume[me] == drains && role[me] == release &&
       (op[me] == no_op || (!KEPT(DRAIN_FIRST) && ghost[me] == no_op)) ->
       leave_in_flight(me);
       close_volume(me);
#ifdef LOCAL
       lock = 0
#endif
     }
  :: d_step { CONNECTED(me) && volume[me] == idle && !answered[me] && nfull(from[me].reports) &&
              (role[me] == release || role[me] == open) && released_in[me] == role_epoch[me] ->
       tell(me, is_released) }

  /* R4: the epoch of another owner, or of none. */
  :: d_step {
       life[me] == up && volume[me] != idle &&
       (role[me] == none || role_epoch[me] != serves_in[me]) && MAY_LEAVE(me) ->
       fence_itself(me)
     }

  :: d_step { life[me] == up && op[me] == landed && volume[me] != idle ->
       acknowledge(me) }

#ifdef LOCAL
  /* The candidate takes the lock, asks for it, or kills who does not answer. */
  :: d_step { life[me] == up && role[me] == lock_it && lock == 0 -> lock = REF(me) }
  :: d_step { CONNECTED(me) && role[me] == lock_it && !answered[me] && nfull(from[me].reports) &&
              (lock == REF(me) || !KEPT(LOCK_FIRST)) -> tell(me, is_locked) }
  :: d_step { WANTS(me) && lock == REF(1 - me) && life[1 - me] == frozen &&
              ghost[1 - me] == no_op ->
       die(1 - me) }
  :: d_step { life[me] == up && lock == REF(me) && op[me] == no_op && OUTRANKED(me) ->
       /* Once released, it does not take it again on the same order, or two would take turns. */
       if
       :: volume[me] != idle -> close_volume(me)
       :: volume[me] == idle && role[me] == lock_it -> forget_role(me)
       :: else -> released_in[me] = (role[me] == none -> released_in[me] : role_epoch[me])
       fi;
       lock = 0 }
  :: d_step { life[me] == up && lock == REF(me) && volume[me] == idle && role[me] == none ->
       lock = 0 }
#else
  /* The backend says ESHUTDOWN, or the client finds itself blocklisted before it opens. */
  :: d_step { life[me] == up && op[me] == refused && MAY_LEAVE(me) -> fence_itself(me) }
  :: d_step { life[me] == up && volume[me] == idle && (blocklist & BIT(REF(me))) ->
       if
       :: KEPT(NEVER_LIFT) -> come_back(me)
       :: else ->
         blocklist = blocklist & ~BIT(REF(me));
         osd_map = osd_map & ~BIT(REF(me))
       fi }
  /* The job of fencing a gateway; any gateway can do it. */
  :: d_step { CONNECTED(me) && etcd.state == Fencing && fenced_in != etcd.epoch &&
              nfull(from[me].reports) ->
       if
       :: KEPT(BLOCKLIST) -> blocklist = blocklist | BIT(etcd.fence)
       :: else
       fi;
       fenced_in = etcd.epoch;
       from[me].reports!is_fenced, etcd.fence, 0 }
#endif
  od
}

/* --- the backend: submitted I/O lands when it likes, or is refused */

hidden byte no_write_out_of_epoch_order;
hidden byte no_acknowledged_write_is_lost;

inline arrives(e, r) {
  no_write_out_of_epoch_order = (e > disk_epoch || (e == disk_epoch && r == disk_ref));
  assert(no_write_out_of_epoch_order);
  disk_epoch = e;
  disk_ref = r
}

inline store(v) {
  no_acknowledged_write_is_lost = (v >= acknowledged);
  assert(no_acknowledged_write_is_lost);
  disk = v
}

#ifdef LOCAL
#define REFUSES(r) false
#else
#define REFUSES(r) (osd_map & BIT(r))
#endif

#define LAND(o, g)                                                                        \
  :: d_step {                                                                             \
       op[g] == in_flight ->                                                              \
       if                                                                                 \
       :: REFUSES(REF(g)) -> op[g] = refused                                              \
       :: else ->                                                                         \
         SPREAD(map[g]);                                                                     \
         arrives(serves_in[g], REF(g));                                                   \
         store(op_value[g]);                                                              \
         op[g] = landed;                                                                  \
         if                                                                               \
         :: life[g] == up && volume[g] != idle -> acknowledge(g)                          \
         :: else                                                                          \
         fi                                                                               \
       fi }                                                                               \
  :: d_step {                                                                             \
       ghost[g] == in_flight ->                                                           \
       if                                                                                 \
       :: REFUSES(ghost_ref[g])                                                           \
       :: else ->                                                                         \
         SPREAD(ghost_map[g]);                                                            \
         arrives(ghost_epoch[g], ghost_ref[g]);                                           \
         store(ghost_value[g])                                                            \
       fi;                                                                                \
       UNLOCK(ghost_ref[g]);                                                              \
       ghost[g] = no_op;                                                                  \
       ghost_value[g] = 0;                                                                \
       ghost_epoch[g] = 0;                                                                \
       FORGET_MAP(g);                                                                     \
       ghost_ref[g] = 0 }

#ifdef LOCAL
#define FORGET_MAP(g) skip
#define UNLOCK(r) lock = (lock == r -> 0 : lock)
#else
#define FORGET_MAP(g) ghost_map[g] = 0
#define UNLOCK(r) skip
#endif

proctype backend() {
  do
  FOR_EACH(_, LAND)
  od
}

/* --- the host: gives a command up when its path is gone, retries with who serves */

#define ASK(o, g)                                                                         \
  :: d_step { asked == 0 && value <= WRITES && life[g] == up && volume[g] == serves &&    \
              op[g] == no_op ->                                                           \
       asked = g + 1;                                                                     \
       asked_incarnation = incarnation[g];                                                \
       op[g] = in_flight;                                                                 \
       op_value[g] = value }                                                              \
  :: d_step { asked == g + 1 &&                                                           \
              (life[g] != up || incarnation[g] != asked_incarnation || volume[g] == idle) -> \
       asked = 0;                                                                         \
       asked_incarnation = 0 }

proctype host() {
  do
  FOR_EACH(_, ASK)
  od
}

/* --- what goes wrong, and what comes back */

inline suspect(g) {
  faults--;
  suspected = suspected | BIT(REF(g))
}

inline trust(g) {
  suspected = suspected & ~BIT(REF(g))
}

#define FAIL(o, g)                                                                        \
  :: d_step { !calm && faults > 0 && life[g] != down && ghost[g] == no_op ->              \
       suspect(g); die(g) }                                                               \
  :: d_step { !calm && faults > 0 && life[g] == up -> suspect(g); life[g] = frozen }      \
  :: d_step { !calm && faults > 0 && life[g] == up && !cut[g] -> suspect(g); cut[g] = true }

/* A gateway that comes back may be trusted at once, or be taken for dead for as long as anyone likes. */
#define RECOVER(o, g)                                                                     \
  :: d_step { !forever && life[g] == down && incarnation[g] < LAST_INCARNATION &&         \
              ghost[g] == no_op -> come_back(g) }                                         \
  :: d_step { !forever && life[g] == frozen -> life[g] = up }                             \
  :: d_step { !forever && cut[g] -> cut[g] = false }                                      \
  :: d_step { !forever && life[g] == frozen && !cut[g] -> life[g] = up; trust(g) }        \
  :: d_step { !forever && cut[g] && life[g] == up -> cut[g] = false; trust(g) }

proctype fate() {
  bool forever;
  do
  FOR_EACH(_, FAIL)
  FOR_EACH(_, RECOVER)
  :: !calm -> calm = true
  :: d_step { !calm -> calm = true; forever = true }
  od
}

/* --- when nothing more can happen */

#define IN_SERVICE(g)                                                                     \
  (etcd.state == Owned && etcd.owner == REF(g) && CONNECTED(g) && volume[g] == serves &&  \
   serves_in[g] == etcd.epoch)
#if GATEWAYS > 2
#define ANY(what) (what(0) || what(1) || what(2))
#else
#define ANY(what) (what(0) || what(1))
#endif

hidden byte volume_finds_an_owner_again;
hidden byte every_write_is_answered;

proctype rest() {
  d_step {
    timeout ->
    volume_finds_an_owner_again = (!ANY(FIT) || ANY(IN_SERVICE));
    assert(volume_finds_an_owner_again);
    every_write_is_answered = (!ANY(FIT) || acknowledged == WRITES);
    assert(every_write_is_answered)
  }
}


/* What to search is said when the search starts, in the environment, so that one compiled search
 * does for all; a replay (README.md) says it with -D instead, for spin's simulator runs no C. */
init {
  atomic {
#ifdef FAULTS
    broken = BROKEN; faults = FAULTS; plans = PLANS; rivals = RIVALS;
    patient = PATIENT;
#else
    c_code {
      now.broken = atoi(getenv("BROKEN"));
      now.faults = atoi(getenv("FAULTS"));
      now.plans = atoi(getenv("PLANS"));
      now.rivals = atoi(getenv("RIVALS"));
      now.patient = atoi(getenv("PATIENT"));
    };
    skip; skip; skip; skip;
#endif
    /* All gateways are alike at first, so it does not matter who begins. */
#ifdef LOCAL
    become(etcd, Acquiring, 0, REF(0), 0);
#else
    epochFor(etcd, REF(0));
#endif
    run leader();
    if
    :: rivals -> run deposed()
    :: else
    fi;
    run gateway(0);
    run gateway(1);
#if GATEWAYS > 2
    run gateway(2);
#endif
    run backend();
    run host();
    run fate();
    if
    :: patient -> run rest()
    :: else
    fi
  }
}
