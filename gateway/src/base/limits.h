// All limits of the gateway process (DESIGN R6, R14). A number that limits a queue, a size or a
// delay belongs here only. Where a comment says so, the configuration can change it within the
// given range.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace sluice::limits {

// --- reactors
inline constexpr unsigned kMaxReactors = 64;
inline constexpr unsigned kRingEntries = 1024;                      // submission queue, per reactor
inline constexpr unsigned kReceiveBuffers = 16;                     // hot receive ring, per reactor
inline constexpr uint32_t kReceiveBufferSize = 65536;               // bytes
inline constexpr size_t kDefaultReactorMemory = size_t{256} << 20;  // buffer pool, configurable
inline constexpr size_t kMinReactorMemory = size_t{72} << 20;
inline constexpr size_t kMaxReactorMemory = size_t{64} << 30;

// --- connections
inline constexpr unsigned kMaxConnections = 4096;     // of hosts, per gateway
inline constexpr unsigned kMaxUnauthenticated = 256;  // login not accepted yet; per gateway
// The maximum of them from one network: an IPv4 address or 64 bits of IPv6. The rest is for others.
constexpr unsigned unauthenticated_of_one_network(unsigned max) { return max - max / 4; }
// The part of them that is reserved for known addresses: peers, and hosts that have logged in.
constexpr unsigned unauthenticated_reserve(unsigned max) { return max / 4; }
// At the forwarding port; not counted above. The second includes a probe by every peer.
inline constexpr unsigned kMaxForwardingConnections = 4096;
inline constexpr unsigned kMaxForwardingUnauthenticated = 1024;
// In addition to connections: volumes and their locks, rings, streams, metrics requests.
inline constexpr unsigned kOtherDescriptors = 1024;
inline constexpr Nanos kLoginTimeout = 15 * kSecond;  // first byte to full feature phase
// The same for unknown addresses while half, or three quarters, of kMaxUnauthenticated are in use.
inline constexpr Nanos kLoginTimeoutHalfFull = 5 * kSecond;
inline constexpr Nanos kLoginTimeoutNearlyFull = 2 * kSecond;
inline constexpr Nanos kNopSilence = 1500 * kMillisecond;  // then a NOP-In ping (R6)
inline constexpr Nanos kNopTimeout = 1500 * kMillisecond;  // then close (R6)
inline constexpr Nanos kDiscoverySilence = 60 * kSecond;   // a discovery session without a request
inline constexpr Nanos kDiscardSilence = 3 * kSecond;      // later input is not submitted (R6)
inline constexpr Nanos kStallLimit = 1 * kSecond;          // then sockets are closed unread (R6)
inline constexpr Nanos kWatchdogLimit = 2 * kSecond;       // then the process is killed (R6)
inline constexpr Nanos kWatchdogInterval = 250 * kMillisecond;  // interval of its checks
// earliest time at which a host abandons a silent path
inline constexpr Nanos kMinHostTimeout = 5 * kSecond;
// one send without completion, then close
inline constexpr Nanos kSendStall = 30 * kSecond;
inline constexpr Nanos kStarvation = 5 * kSecond;      // no receive buffer, then close
inline constexpr Nanos kCloseLinger = 2 * kSecond;     // for the peer to close its side
inline constexpr Nanos kTick = 100 * kMillisecond;     // interval of the timeout checks
inline constexpr Nanos kShutdownLogout = 3 * kSecond;  // wait for logouts after SIGTERM
// for a logout after access was withdrawn
inline constexpr Nanos kEvictionLogout = 3 * kSecond;
inline constexpr Nanos kShutdownBound = 10 * kSecond;  // SIGTERM to exit
// The end of a process with a blocked thread (base/exit_guard.h). A call that lasts for once to
// twice kLastingCall lets the release process begin, which stays kReleaseKept after the last one.
inline constexpr Nanos kLastingCall = 100 * kMillisecond;
inline constexpr Nanos kReleaseKept = 5 * kSecond;
inline constexpr Nanos kReleaseReady = 100 * kMillisecond;  // a process that ends waits for it
// The end of kShutdownBound in which caches are flushed if something is still in flight.
inline constexpr Nanos kShutdownSync = 1 * kSecond;
// Forwarding (R6): the owner sends a token at this interval, which each forwarded command carries.
// It refuses a command whose token is older than kTokenLife when its range is held.
inline constexpr Nanos kTokenInterval = 100 * kMillisecond;
inline constexpr Nanos kTokenLife = 500 * kMillisecond;
// earliest, after a reset (fast_io_fail_tmo)
inline constexpr Nanos kHostChangesPath = 1 * kSecond;
inline constexpr Nanos kHoldCommands = 1 * kSecond;  // of a LUN in transition, then 02/04/0A
// then a gateway reports a peer as silent (R1)
inline constexpr Nanos kPeerSilence = 4 * kSecond;
// How long a LOGICAL UNIT RESET is retried at successive owners; then Function rejected. This
// covers the detection of a node's loss and a takeover or move (R7: 5 s). Linux waits 30 s for the
// answer.
inline constexpr Nanos kResetFollows = 10 * kSecond;
inline constexpr Nanos kHolderPatience = 1 * kSecond;  // for an answer to a request for a lock (R2)
inline constexpr Nanos kDialBound = 1 * kSecond;       // for a connection to a peer
inline constexpr Nanos kForwardingLogin = 2 * kSecond;  // from there to full feature phase
inline constexpr Nanos kRedial = 200 * kMillisecond;    // between attempts
// How much a forwarded host's age may have grown between its measurement and its use, at most. It
// covers dialing and login, the batch clocks of two reactors, and the clocks of two machines that
// each deviate by 500 ppm.
constexpr Nanos host_age_slack(Nanos age) {
  return kDialBound + kForwardingLogin + 2 * kStallLimit + age / 1000;
}
inline constexpr unsigned kMaxForwardingKeys = 8;
inline constexpr unsigned kMaxPeers = 1024;           // gateways that share path sets with this one
inline constexpr unsigned kMaxFencedPeers = 4096;     // incarnations
inline constexpr unsigned kMaxForwardFunctions = 16;  // task management in flight, per link
static_assert(kMaxForwardingUnauthenticated >= kMaxPeers, "R1: a probe could find no place");
static_assert(kResetFollows > kPeerSilence + 5 * kSecond, "no reset lives to see a takeover");
static_assert(kDiscardSilence + kTokenLife < kMinHostTimeout, "R6: a retry could be overtaken");
static_assert(kTokenLife < kHostChangesPath,
              "R6: a retry could be overtaken by what was forwarded");
static_assert(kDiscardSilence + kStallLimit < kMinHostTimeout, "R6: a retry could be overtaken");
static_assert(kWatchdogLimit + 2 * kWatchdogInterval + kReleaseReady < kMinHostTimeout,
              "R6: a retry could be overtaken");
static_assert(2 * kTick < kWatchdogInterval, "an idle reactor iterates between two checks");
static_assert(kNopSilence + kNopTimeout <= kDiscardSilence, "R6: silent connections close first");

// --- data segments as they are received (R14)
// Smaller pieces are copied together. So a data segment, or a task's data, holds at most
// (kReceiveBufferSize + kPackingBuffer) / kPackedPiece times its bytes from the pool, plus two
// buffers.
inline constexpr uint32_t kPackedPiece = 4096;
inline constexpr uint32_t kPackingBuffer = 16384;  // bytes
static_assert(kPackedPiece <= kPackingBuffer);

// --- login (RFC 7143 §6)
inline constexpr uint32_t kMaxLoginSegment = 8192;  // MaxRecvDataSegmentLength before negotiation
inline constexpr uint32_t kMaxTextBytes = 65536;    // one multi-PDU request or answer
inline constexpr unsigned kMaxKeysPerExchange = 128;
inline constexpr unsigned kMaxLoginPdus = 64;
inline constexpr size_t kMaxKeyName = 63;     // RFC 7143 §6.1
inline constexpr size_t kMaxIscsiName = 223;  // RFC 7143 §4.2.7.1
// Failed authentication (iscsi/login/login_throttle.h). After the first few failures of one address
// or initiator name, the answer is delayed; the delay doubles each time.
inline constexpr unsigned kFreeLoginFailures = 3;
inline constexpr Nanos kRefusalDelayLeast = 100 * kMillisecond;
inline constexpr Nanos kRefusalDelayMost = 2 * kSecond;
inline constexpr Nanos kFailuresForgotten = 600 * kSecond;  // after the last one
// Attempts of one address, or of one initiator name, that are evaluated during that delay.
inline constexpr size_t kFailedLoginsAtOnce = 8;
// An address may try a name at this interval, even if others fail with that name.
inline constexpr Nanos kOwnLoginTry = 5 * kSecond;
inline constexpr size_t kMaxThrottledPeers = 4096;    // addresses, and initiator names
inline constexpr size_t kMaxKnownNetworks = 4096;     // from which hosts have logged in
inline constexpr size_t kMaxReportedInitiators = 16;  // initiators with addresses, in one report

// --- full feature phase
inline constexpr uint32_t kDefaultCommandWindow = 128;  // MaxCmdSN - ExpCmdSN + 1, configurable
inline constexpr uint32_t kMaxCommandWindow = 1024;
inline constexpr uint32_t kMaxImmediateCommands = 32;  // immediate tasks beyond the window
// largest MaxRecvDataSegmentLength that the target may declare
inline constexpr uint32_t kMaxSegment = 16u << 20;
inline constexpr uint32_t kMaxBurst = 16u << 20;
inline constexpr uint32_t kMaxOutstandingR2t = 16;
inline constexpr uint32_t kMaxAhsBytes = 255 * 4;  // TotalAHSLength is one byte of words
// hard limit of data in flight per session
inline constexpr size_t kSessionMemory = size_t{64} << 20;
// The part of a reactor's memory that stays free for receiving when write data is requested or
// reads run, and the part for first writes of nexuses whose unit has used its share.
inline constexpr size_t kReceiveReserve = 8;  // 1/8
inline constexpr size_t kFirstWriteReserve = 4;
// After this time without memory the oldest first transfer is admitted before all others, for
// kMemorySlice (prevents starvation).
inline constexpr Nanos kMemoryPatience = 2 * kSecond;
inline constexpr Nanos kMemorySlice = 500 * kMillisecond;
static_assert(kMemorySlice > 4 * kTick, "it asks at each tick");
// A unit may hold this many times the free memory of unsolicited data; beyond it: TASK SET FULL.
// For a LUN, this many times the free budget of its session may be requested.
inline constexpr size_t kUnaskedShare = 3;
inline constexpr size_t kLunShare = 3;
// Requested by R2T and not received yet, per session. All of it may be queued before the answer to
// a ping: at 100 Mbit/s that takes a third of a second (R6). With 1 ms round-trip time it permits 4
// GB/s.
inline constexpr uint32_t kMaxSolicited = 4u << 20;
inline constexpr uint32_t kMaxOutputBytes = 8u << 20;  // queued for a peer before execution pauses
inline constexpr unsigned kMaxSendVectors = 512;       // iovecs per gathered send

// --- SCSI
inline constexpr uint32_t kMaxTransferBytes = 32u << 20;  // VPD B0 maximum transfer length
static_assert(kMinReactorMemory - kMinReactorMemory / kReceiveReserve / 2 -
                      kReceiveBuffers * kReceiveBufferSize >=
                  2 * size_t{kMaxTransferBytes},
              "R14: the largest write never runs beside one peer that reads nothing");
inline constexpr uint32_t kOptimalTransferBytes = 1u << 20;
inline constexpr uint32_t kMaxCompareAndWriteBlocks = 255;
inline constexpr uint32_t kMaxUnmapDescriptors = 256;
inline constexpr uint64_t kMaxUnmapBytes = uint64_t{512} << 20;  // 1 Mi blocks of 512 bytes
inline constexpr uint64_t kMaxWriteSameBytes = uint64_t{1} << 32;
// Blocks that WRITE SAME and UNMAP hold at a time: no more than the largest WRITE, so that an
// overlapping command waits no longer for them.
inline constexpr uint64_t kMaxHeldBytes = kMaxTransferBytes;
inline constexpr uint32_t kMaxParameterList = 65536;  // PR OUT, MODE SELECT, XCOPY, UNMAP
// Maximum data of one command that a device answers itself; limits its allocation length.
inline constexpr uint32_t kMaxPassedData = 256u << 10;  // bytes
inline constexpr unsigned kMaxLuns = 4096;              // per target (LUN 0..16383 addressable)
// Logical unit resets that wait for owners, per nexus: those of one TARGET RESET. More are refused.
inline constexpr unsigned kMaxFollowingResets = kMaxLuns;
inline constexpr unsigned kMaxRegistrations = 4096;  // persistent reservations per unit
inline constexpr unsigned kMaxReservationChanges =
    64;  // waiting to change reservations, per unit; then BUSY
inline constexpr unsigned kMaxReservationCommits = 1024;  // waiting for the store, per gateway
// After this time a ReservationStore reports an unknown outcome. A host's timeout for PERSISTENT
// RESERVE OUT (Linux: 60 s, Windows: 10 s) covers a commit, a query of its outcome, and one command
// that waited behind them.
inline constexpr Nanos kReservationStoreBound = 3 * kSecond;
// Commands of one nexus for one owner, including waiting ones.
inline constexpr unsigned kMaxLinkCommands = kMaxCommandWindow + kMaxImmediateCommands;
// How long task management functions, logouts and logins that replace a session wait for an aborted
// command that a device does not complete. Then the command's range alone keeps the order (R5).
// Linux waits 15 s for the answers to ABORT TASK, logout and login, and 30 s for that to LOGICAL
// UNIT RESET. A disk that retries a read error is slower than a second, and rarely than this.
inline constexpr Nanos kAbortBound = 5 * kSecond;
static_assert(kResetFollows + kAbortBound + kMinHostTimeout < 30 * kSecond,
              "Linux repeats a reset");
static_assert(2 * kAbortBound < kLoginTimeout, "a login that replaces a session ends before");
inline constexpr unsigned kMaxUnitAttentions = 32;  // pending per I_T_L nexus
// per unit, for nexuses that have not used it yet
inline constexpr unsigned kMaxNamedAttentions = 64;
// forwarded nexuses recorded per unit attention
inline constexpr unsigned kMaxNotifiedNexuses = 64;
inline constexpr unsigned kMaxInFlightPerUnit = 1024;  // per reactor; more wait
// A unit is stuck if its backend has requests and has completed none for this time. Hosts repeat
// commands after 10 to 60 s, and a healthy disk under its full load completes some every 0.1 s.
inline constexpr Nanos kUnitStuck = 1400 * kMillisecond;
// A request that is in progress for this time is hung, also if others complete. A disk repeats a
// command that it can't read for some seconds.
inline constexpr Nanos kRequestHung = 10 * kSecond;
// How long an error of the medium is a problem of its unit. Hosts repeat failed commands sooner.
inline constexpr Nanos kMediumErrorsKnown = 30 * kSecond;
// Interval at which units are checked for both, and volumes for what is to be reported of them.
inline constexpr Nanos kStuckPoll = 150 * kMillisecond;
static_assert(kUnitStuck + 2 * kStuckPoll < 2 * kSecond, "a stuck volume is reported within 2 s");
// Requests that the backend of a stuck unit may have, for all nexuses together; more commands:
// BUSY. These are the commands of two hosts with the default window. A unit that is not stuck has
// no such limit, because the windows of the sessions bound its commands.
inline constexpr uint64_t kMaxStuckRequests = 256;
// Waiting for an owner (more: BUSY) or for bandwidth (more: TASK SET FULL), for all nexuses
// together.
inline constexpr unsigned kMaxHeldPerUnit = 4096;
inline constexpr unsigned kMaxCopySegments = 256;
inline constexpr unsigned kMaxCopyTargets = 16;
inline constexpr uint64_t kMaxCopyBytes = uint64_t{1} << 30;
inline constexpr unsigned kMaxRodTokens = 256;         // per target
inline constexpr unsigned kMaxCopyRecords = 64;        // results kept per nexus
inline constexpr uint32_t kCopyChunkBytes = 1u << 20;  // read and written as one
inline constexpr unsigned kCopyChunksInFlight = 2;     // per copy

// --- files and block devices
// Operations in progress on one device, and its threads (backend/device_threads.h). Fewer if the
// queue of the device has less than twice as many requests.
inline constexpr unsigned kDeviceThreads = 32;
inline constexpr Nanos kDeviceThreadIdles = 5 * kSecond;  // then it ends

// --- Ceph images
inline constexpr unsigned kMaxImageRequests = 4096;  // in librbd, per image; more: BUSY
// In librados, per client; pools share clients. Requests to objects: as many as all hosts can have
// with the default window, two objects each. Bytes: all memory that they can use.
inline constexpr uint64_t kCephInFlight = uint64_t{2} * kMaxConnections * kDefaultCommandWindow;
inline constexpr uint64_t kCephInFlightBytes = kMaxReactors * kMaxReactorMemory;
// Threads of a single pool that may wait for Ceph, and queued tasks per pool. All pools together
// have twice as many threads, and each at least one (base/executor.h).
inline constexpr unsigned kImageThreads = 32;
inline constexpr unsigned kMaxImageTasks = 1u << 16;
inline constexpr unsigned kImageJobThreads = 4;   // for each of short jobs, long jobs and fencing
inline constexpr unsigned kMaxImageUpdates = 64;  // queued writes of a volume's record
// Time to wait for a lock whose holder is about to release it; a later release is not waited for.
inline constexpr Nanos kImageHandover = 2 * kSecond;
inline constexpr Nanos kCephConnect = 10 * kSecond;
// Interval at which a Ceph client checks its disks and watches: with few images, and the longest
// with many. In between it is chosen for kCephAsks checked images a second.
inline constexpr Nanos kCephTick = 500 * kMillisecond;
inline constexpr Nanos kCephTickOfMany = 4 * kSecond;
inline constexpr unsigned kCephAsks = 100;
// Opening an image including its lock: Ceph detects a crashed client after 30 s.
inline constexpr Nanos kImageOpens = 45 * kSecond;
inline constexpr Nanos kImageCloses = 5 * kSecond;    // at the end of the process
inline constexpr unsigned kMaxPoolImages = 1u << 17;  // in one list

// --- configuration
inline constexpr size_t kMaxConfigBytes = size_t{4} << 20;  // one file
inline constexpr Nanos kUnitLeaves = 2 * kSecond;           // for a removed LUN to release its file
inline constexpr size_t kMaxConfigErrors = 50;              // reported together
inline constexpr size_t kMaxPortals = 64;
inline constexpr size_t kMaxTargets = 1024;
inline constexpr size_t kMaxHosts = 1024;         // per target
inline constexpr size_t kMaxInitiators = 256;     // per host
inline constexpr size_t kMaxPathBytes = 4095;     // PATH_MAX without its NUL
inline constexpr uint64_t kMaxLunNumber = 16383;  // flat space addressing, SAM-5 §4.7
inline constexpr size_t kMinChapSecret = 12;      // bytes: 96 bits, RFC 7143 §9.2.1
inline constexpr size_t kMaxChapSecret = 255;
inline constexpr size_t kMaxChapUser = 255;

// --- the control plane (DESIGN §2)
inline constexpr size_t kMaxEndpoints = 16;
// messages in the queue; then the stream is restarted
inline constexpr size_t kStreamQueue = 16384;
inline constexpr int kStreamMessageBytes = 64 << 20;
inline constexpr Nanos kStreamOpening = 5 * kSecond;  // from the call to the welcome
inline constexpr Nanos kStreamBackoffLeast = 100 * kMillisecond;
inline constexpr Nanos kStreamBackoffMost = 5 * kSecond;
// a stream that lived this long counts as successful
inline constexpr Nanos kStreamSettled = 10 * kSecond;
inline constexpr Nanos kStreamSilence =
    2 * kSecond;  // then an HTTP/2 ping, answered within as long
inline constexpr size_t kMaxDesiredObjects = 1u << 17;  // of one gateway
inline constexpr size_t kMaxDesiredBytes = size_t{256} << 20;
// Threads of a single pool that may wait for its disks and for lock holders. All pools together
// have twice as many threads, and each at least one (base/executor.h).
inline constexpr unsigned kControlThreads = 16;
inline constexpr Nanos kControlStops = 1 * kSecond;  // for running work at the end of the process
static_assert(kShutdownBound / 2 + kControlStops + kShutdownSync < kShutdownBound,
              "hosts get no time to log out");
inline constexpr Nanos kLockPollLeast = 5 * kMillisecond;
inline constexpr Nanos kLockPollMost = 250 * kMillisecond;
// An owner without its volume's lock after this time has failed to open it; this is final for the
// epoch.
inline constexpr Nanos kLockGivesUp = 10 * kSecond;
// retry for a Ceph client that is not recorded
inline constexpr Nanos kClientAgain = 5 * kSecond;
inline constexpr Nanos kPoolAgain = 2 * kSecond;  // retry for an unreachable pool
// retry for reservations that could not be loaded
inline constexpr Nanos kLoadAgain = 250 * kMillisecond;
inline constexpr size_t kMaxHandoverRequest = 256;  // bytes of one request for a lock
inline constexpr size_t kMaxVolumeRecord = size_t{64} << 20;
// bytes of a local pool that its gateways release when it is full; XFS needs less to create files
inline constexpr int64_t kPoolReserve = int64_t{1} << 20;
inline constexpr size_t kMaxReservationState = size_t{1} << 20;  // bytes in a commit
// How long the control plane has after a start until the saved desired state is applied.
inline constexpr Nanos kStateFromDisk = 2 * kSecond;
// After this time without a stream, a gateway that does not reach the owner of a volume reports its
// paths to it as unavailable (R11). A restart of the control plane takes less.
inline constexpr Nanos kCutOff = 15 * kSecond;
inline constexpr Nanos kApplyAgain = 5 * kSecond;  // retry of refused objects
// How long the number of a LUN that hosts no longer see is reserved for its volume, in seconds of
// wall clock time. It is less than the control plane's quarantine (24 h); otherwise a gateway could
// refuse a number that the quarantine has just released.
inline constexpr int64_t kLunNumberHeld = 23 * 3600;
inline constexpr Nanos kObserveSessions = 1 * kSecond;
inline constexpr Nanos kObservePools = 10 * kSecond;
inline constexpr Nanos kReportHostFaults = 10 * kSecond;
inline constexpr size_t kMaxJobs = 256;  // of one pool; further ones are dropped and sent again

// --- admin socket and log
inline constexpr size_t kMaxAdminRequest = 4096;      // bytes of one line
inline constexpr unsigned kMaxAdminRequests = 64;     // per connection
inline constexpr Nanos kAdminPatience = 5 * kSecond;  // per connection
inline constexpr size_t kLogQueue = 8192;             // lines; the oldest are dropped
// below level error; the others are only counted
inline constexpr unsigned kLogLinesPerSecond = 500;

}  // namespace sluice::limits
