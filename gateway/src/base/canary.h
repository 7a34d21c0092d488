// Canaries: gateways that lack one of DESIGN §3's rules, so that tests/robustness can show that it
// would miss it. They exist only in the build of the preset `canary`; everywhere else lacks() is
// false at compile time and whatever asks costs nothing.
#pragma once

#include <cstdint>

namespace sluice {

// What can be switched off, each by its name in the environment variable SLUICE_CANARY. Two of R6's
// bounds that stand behind each other also go together: r6-late-delivery (kClose, kAge),
// r6-hung-reactor (kStall, kWatchdog), r6-orphans (kToken, kLinger).
enum class Guard : uint8_t {
  kNone,
  kOneOwner,     // r1-two-owners: who is told to forward opens the volume and serves it
  kLock,         // r2-no-lock: volumes are opened without their lock
  kRecord,       // r2-old-snapshot: reservations kept beside the data are not used
  kFence,        // r4-serves-on: who has lost a volume says so, and goes on serving it
  kRange,        // r5-ranges-freed: a command's blocks are free once its nexus or task is gone
  kPing,         // r6-no-pings: nobody is pinged, so nobody is known to answer, or not to
  kClose,        // r6-never-closed: who doesn't answer a ping is not closed
  kAge,          // r6-age-unlooked: what comes after a silence is executed
  kStall,        // r6-frozen: after standing still a reactor goes on where it was
  kWatchdog,     // r6-no-watchdog: nobody kills a process of which one reactor hangs
  kToken,        // r6-old-tokens: forwarded commands are taken however old their token is
  kLinger,       // r6-lingering: what a forwarding socket holds outlives its process
  kBlocklist,    // r2-no-blocklist: an image's lock is broken, its holder not blocklisted
  kRbdLockMode,  // r2-lock-on-demand: an image's lock is the only fence, and goes to whoever writes
  kRbdCache,     // r12-rbd-cache: images acknowledge writes from a cache in memory
  kChap,         // chap-optional: a host with CHAP credentials is admitted without CHAP
  kPeer,         // any-origin: any peer's key admits a gateway that claims to be any other
  kImage,        // any-image: an image is not compared with its record
  kMarker,       // any-pool: a directory without a marker is marked, though one is known
};

#ifdef SLUICE_CANARIES
// Whether this process was started without it.
bool lacks(Guard guard);
// Ends the process if SLUICE_CANARY is set to no such name; gives it.
const char* canary();
#else
constexpr bool lacks(Guard) { return false; }
constexpr const char* canary() { return ""; }
#endif

}  // namespace sluice
