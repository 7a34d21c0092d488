// Safety mutations: a gateway that lacks one of DESIGN §3's rules, so that tests/robustness can
// show that it detects the violation. They exist only in builds of the preset `mutation`. In all
// others mutation_disables() is false at compile time and costs nothing.
#pragma once

#include <cstdint>

namespace sluice {

// The rules that can be disabled, each with its name in the environment variable
// SLUICE_SAFETY_MUTATION. Pairs of R6's limits that back each other up are also disabled together:
// r6-late-delivery (kClose, kAge), r6-hung-reactor (kStall, kWatchdog), r6-orphans (kToken,
// kLinger).
enum class Guard : uint8_t {
  kNone,
  kOneOwner,   // r1-two-owners: a gateway that should forward opens the volume and serves it
  kLock,       // r2-no-lock: volumes are opened without their lock
  kRecord,     // r2-old-snapshot: reservations stored beside the data are not used
  kFence,      // r4-serves-on: a gateway that has lost a volume reports that, but still serves it
  kRange,      // r5-ranges-freed: a command's blocks are free when its nexus or task is gone
  kPing,       // r6-no-pings: no pings are sent, so unresponsive hosts are not detected
  kClose,      // r6-never-closed: a connection is not closed when a ping is not answered
  kAge,        // r6-age-unlooked: commands that arrive after a silence are executed
  kStall,      // r6-frozen: after a stall a reactor continues as if nothing had happened
  kWatchdog,   // r6-no-watchdog: a process with a hanging reactor is not killed
  kToken,      // r6-old-tokens: forwarded commands are accepted regardless of their token's age
  kLinger,     // r6-lingering: output in a forwarding socket outlives its process
  kBlocklist,  // r2-no-blocklist: an image's lock is broken, but its holder not blocklisted
  // r2-lock-on-demand: an image's lock is the only fence, and moves to any client that writes
  kRbdLockMode,
  kRbdCache,  // r12-rbd-cache: images acknowledge writes from a cache in memory
  kChap,      // chap-optional: a host with CHAP credentials is admitted without CHAP
  kPeer,      // any-origin: any peer's key admits a gateway that claims to be any other
  kImage,     // any-image: an image is not compared with its record
  kMarker,    // any-pool: a directory without a marker is marked although a marker is known
  // The limits that isolate one device from the others. Histories detect the first, unit tests the
  // last three, and tests/isolation the others.
  kDetachedRange,  // r5-detached-freed: a detached command's blocks are free
  kAbortBound,     // r15-unbounded-abort: functions and logins wait for a device without a bound
  kStuckLimit,     // r14-stuck-unlimited: a stuck unit accepts any number of requests
  kDeviceCalls,    // r15-device-unlimited: any number of calls wait for one device
  kWriteShare,     // r15-no-write-share: one LUN may have all write data of a session
  kReadShare,      // r15-no-read-share: one LUN may have all executing READs of a session
  kRelease,        // r15-no-release: a process with blocked threads ends and releases nothing
  kPiece,          // r15-whole-range: WRITE SAME and UNMAP hold all their blocks at once
  kStuckShare,     // r15-no-stuck-share: stuck units may have the whole command window of a session
  kMemoryShare,    // r14-no-memory-share: one unit may have all write data of a reactor
  kGroupThreads,   // r15-pool-unlimited: one pool may have all threads for work that waits
};

#ifdef SLUICE_SAFETY_MUTATIONS
// Whether this process was started without that rule.
bool mutation_disables(Guard guard);
// Returns the value of SLUICE_SAFETY_MUTATION; ends the process if it is not one of these names.
const char* safety_mutation();
#else
constexpr bool mutation_disables(Guard) { return false; }
constexpr const char* safety_mutation() { return ""; }
#endif

}  // namespace sluice
