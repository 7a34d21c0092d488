// Every bound of the gateway process in one place (DESIGN R6, R14). A number that limits a queue,
// a size or a delay belongs here and nowhere else; configuration may lower or raise those that
// say so, within the range given.
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
inline constexpr unsigned kMaxUnauthenticated = 256;  // whose login is not accepted, per gateway
// Of them, from one network: an address of IPv4, 64 bits of IPv6. A part is always others'.
constexpr unsigned unauthenticated_of_one_network(unsigned max) { return max - max / 4; }
// Of them, for known addresses alone: of peers, and of hosts that have logged in.
constexpr unsigned unauthenticated_reserve(unsigned max) { return max / 4; }
// At the forwarding port, not counted above. The second has room for a probe by every peer.
inline constexpr unsigned kMaxForwardingConnections = 4096;
inline constexpr unsigned kMaxForwardingUnauthenticated = 1024;
// Beside connections: volumes and their locks, rings, streams, what asks for metrics.
inline constexpr unsigned kOtherDescriptors = 1024;
inline constexpr Nanos kLoginTimeout = 15 * kSecond;  // first byte to full feature phase
// The same for unknown addresses while half of the unauthenticated are there, and three quarters.
inline constexpr Nanos kLoginTimeoutHalfFull = 5 * kSecond;
inline constexpr Nanos kLoginTimeoutNearlyFull = 2 * kSecond;
inline constexpr Nanos kNopSilence = 1500 * kMillisecond;  // then a NOP-In ping (R6)
inline constexpr Nanos kNopTimeout = 1500 * kMillisecond;  // then close (R6)
inline constexpr Nanos kDiscoverySilence = 60 * kSecond;   // a discovery session without a request
inline constexpr Nanos kDiscardSilence = 3 * kSecond;  // what arrives later is not submitted (R6)
inline constexpr Nanos kStallLimit = 1 * kSecond;      // then sockets are closed unread (R6)
inline constexpr Nanos kWatchdogLimit = 2 * kSecond;   // then the process is killed (R6)
inline constexpr Nanos kWatchdogLook = 250 * kMillisecond;  // how often it looks
inline constexpr Nanos kHostGivesUp = 5 * kSecond;          // earliest a host leaves a silent path
inline constexpr Nanos kSendStall = 30 * kSecond;           // one send without an end, then close
inline constexpr Nanos kStarvation = 5 * kSecond;           // no receive buffer, then close
inline constexpr Nanos kCloseLinger = 2 * kSecond;          // for the peer to close its side too
inline constexpr Nanos kTick = 100 * kMillisecond;          // timeouts are looked at this often
inline constexpr Nanos kShutdownLogout = 3 * kSecond;       // wait for logouts after SIGTERM
inline constexpr Nanos kEvictionLogout = 3 * kSecond;       // for a logout once access is gone
inline constexpr Nanos kShutdownBound = 10 * kSecond;       // SIGTERM to exit
// Forwarding (R6): the owner pings so often, with a token that each forwarded command carries, and
// refuses a command whose token is older than a token's life when its range is held.
inline constexpr Nanos kTokenInterval = 100 * kMillisecond;
inline constexpr Nanos kTokenLife = 500 * kMillisecond;
inline constexpr Nanos kHostChangesPath = 1 * kSecond;  // soonest after a reset (fast_io_fail_tmo)
inline constexpr Nanos kHoldCommands = 1 * kSecond;     // of a LUN in transition, then 02/04/0A
inline constexpr Nanos kPeerSilence = 4 * kSecond;      // then a gateway calls a peer silent (R1)
// How long a LOGICAL UNIT RESET follows its unit's owner, then Function rejected: a node's loss is
// noticed, and a takeover or a move (R7: 5 s) brings the next one. Linux waits 30 s for its answer.
inline constexpr Nanos kResetFollows = 10 * kSecond;
inline constexpr Nanos kHolderPatience = 1 * kSecond;  // for an answer to a request for a lock (R2)
inline constexpr Nanos kDialBound = 1 * kSecond;       // for a connection to a peer
inline constexpr Nanos kForwardingLogin = 2 * kSecond;  // from there to full feature phase
inline constexpr Nanos kRedial = 200 * kMillisecond;    // between attempts
// How much later than it was told a forwarded host's age may be counted from, at most: dialling and
// login come in between, two reactors' clocks of their batches, and two machines' clocks that are
// slewed by 500 ppm each.
constexpr Nanos host_age_slack(Nanos age) {
  return kDialBound + kForwardingLogin + 2 * kStallLimit + age / 1000;
}
inline constexpr unsigned kMaxForwardingKeys = 8;
inline constexpr unsigned kMaxPeers = 1024;           // gateways that share path sets with this one
inline constexpr unsigned kMaxFencedPeers = 4096;     // incarnations
inline constexpr unsigned kMaxForwardFunctions = 16;  // task management in flight, per link
static_assert(kMaxForwardingUnauthenticated >= kMaxPeers, "R1: a probe could find no place");
static_assert(kResetFollows > kPeerSilence + 5 * kSecond, "no reset lives to see a takeover");
static_assert(kDiscardSilence + kTokenLife < kHostGivesUp, "R6: a retry could be overtaken");
static_assert(kTokenLife < kHostChangesPath,
              "R6: a retry could be overtaken by what was forwarded");
static_assert(kDiscardSilence + kStallLimit < kHostGivesUp, "R6: a retry could be overtaken");
static_assert(kWatchdogLimit + 2 * kWatchdogLook < kHostGivesUp, "R6: a retry could be overtaken");
static_assert(2 * kTick < kWatchdogLook, "a reactor at rest turns between two looks");
static_assert(kNopSilence + kNopTimeout <= kDiscardSilence, "R6: silent connections close first");

// --- data segments as they are received (R14)
// Pieces below this many bytes are copied together. So a data segment, or a task's data, keeps no
// more than (kReceiveBufferSize + kPackingBuffer) / kPackedPiece times its bytes from the pool, and
// two buffers.
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
// Failed authentication (iscsi/login/login_throttle.h). The answer to each failure after the first
// few, of one address or one initiator name, is held back: twice as long each time.
inline constexpr unsigned kFreeLoginFailures = 3;
inline constexpr Nanos kRefusalDelayLeast = 100 * kMillisecond;
inline constexpr Nanos kRefusalDelayMost = 2 * kSecond;
inline constexpr Nanos kFailuresForgotten = 600 * kSecond;  // after the last one
// Attempts of one address, and of one initiator name, that are evaluated within that delay.
inline constexpr size_t kFailedLoginsAtOnce = 8;
// An address may try a name so often, however many others fail by that name.
inline constexpr Nanos kOwnLoginTry = 5 * kSecond;
inline constexpr size_t kMaxThrottledPeers = 4096;  // addresses, and initiator names
inline constexpr size_t kMaxKnownNetworks = 4096;   // by which hosts have logged in
inline constexpr size_t kMaxReportedFailures = 16;  // initiators with addresses, in one report

// --- full feature phase
inline constexpr uint32_t kDefaultCommandWindow = 128;  // MaxCmdSN - ExpCmdSN + 1, configurable
inline constexpr uint32_t kMaxCommandWindow = 1024;
inline constexpr uint32_t kMaxImmediateCommands = 32;  // immediate tasks beyond the window
inline constexpr uint32_t kMaxSegment = 16u << 20;     // MaxRecvDataSegmentLength we may declare
inline constexpr uint32_t kMaxBurst = 16u << 20;
inline constexpr uint32_t kMaxOutstandingR2t = 16;
inline constexpr uint32_t kMaxAhsBytes = 255 * 4;           // TotalAHSLength is one byte of words
inline constexpr size_t kSessionMemory = size_t{64} << 20;  // data in flight per session, hard
// What remains of a reactor's memory for receiving when writes are asked for their data or reads
// run, as a part of it; and what a nexus whose unit holds its share needs for a first write.
inline constexpr size_t kReceiveReserve = 8;  // 1/8
inline constexpr size_t kFirstWriteReserve = 4;
// Who finds no memory for a first transfer for so long is let in before all others, for so long.
inline constexpr Nanos kMemoryPatience = 2 * kSecond;
inline constexpr Nanos kMemoryTurn = 500 * kMillisecond;
static_assert(kMemoryTurn > 4 * kTick, "it asks at each tick");
// A unit may hold so many times what is free of data that came unasked; more: TASK SET FULL. And so
// many times what is free of its session's budget a LUN may be asked for.
inline constexpr size_t kUnaskedShare = 3;
inline constexpr size_t kLunShare = 3;
// Asked for by R2T and not come yet, per session. All of it may be queued before the answer to a
// ping: at 100 Mbit/s that is a third of a second (R6). At 1 ms of round trip it allows 4 GB/s.
inline constexpr uint32_t kMaxSolicited = 4u << 20;
inline constexpr uint32_t kMaxOutputBytes = 8u << 20;  // queued to a peer before we stop executing
inline constexpr unsigned kMaxSendVectors = 512;       // iovecs per gathered send

// --- SCSI
inline constexpr uint32_t kMaxTransferBytes = 32u << 20;  // VPD B0 maximum transfer length
static_assert(kMinReactorMemory - kMinReactorMemory / kReceiveReserve / 2 -
                      kReceiveBuffers * kReceiveBufferSize >=
                  2 * size_t{kMaxTransferBytes},
              "R14: the largest write waits for ever beside one peer that reads nothing");
inline constexpr uint32_t kOptimalTransferBytes = 1u << 20;
inline constexpr uint32_t kMaxCompareAndWriteBlocks = 255;
inline constexpr uint32_t kMaxUnmapDescriptors = 256;
inline constexpr uint64_t kMaxUnmapBytes = uint64_t{512} << 20;  // 1 Mi blocks of 512 bytes
inline constexpr uint64_t kMaxWriteSameBytes = uint64_t{1} << 32;
inline constexpr uint32_t kMaxParameterList = 65536;  // PR OUT, MODE SELECT, XCOPY, UNMAP
// What a device that answers itself may answer to one command; its allocation length.
inline constexpr uint32_t kMaxPassedData = 256u << 10;  // bytes
inline constexpr unsigned kMaxLuns = 4096;              // per target (LUN 0..16383 addressable)
// Logical unit resets that wait for owners, per nexus: one TARGET RESET's. More are refused.
inline constexpr unsigned kMaxFollowingResets = kMaxLuns;
inline constexpr unsigned kMaxRegistrations = 4096;  // persistent reservations per unit
inline constexpr unsigned kMaxReservationChanges =
    64;  // waiting for their turn, per unit; then BUSY
inline constexpr unsigned kMaxReservationCommits = 1024;  // waiting for the store, per gateway
// What a ReservationStore can't tell by then it calls unknown. A host's own timeout for PERSISTENT
// RESERVE OUT (Linux: 60 s, Windows: 10 s) covers a commit, a look at what became of it, and one
// that waited behind them.
inline constexpr Nanos kReservationStoreBound = 3 * kSecond;
// Commands of one nexus on their way to one owner, waiting ones included.
inline constexpr unsigned kMaxLinkCommands = kMaxCommandWindow + kMaxImmediateCommands;
inline constexpr unsigned kMaxUnitAttentions = 32;     // pending per I_T_L nexus
inline constexpr unsigned kMaxNamedAttentions = 64;    // kept per unit for who hasn't used it yet
inline constexpr unsigned kMaxToldNexuses = 64;        // forwarded ones, kept per unit attention
inline constexpr unsigned kMaxInFlightPerUnit = 1024;  // per reactor; more wait
// Waiting for an owner (more: BUSY) or for bandwidth (more: TASK SET FULL), all nexuses together.
inline constexpr unsigned kMaxHeldPerUnit = 4096;
inline constexpr unsigned kMaxCopySegments = 256;
inline constexpr unsigned kMaxCopyTargets = 16;
inline constexpr uint64_t kMaxCopyBytes = uint64_t{1} << 30;
inline constexpr unsigned kMaxRodTokens = 256;         // per target
inline constexpr unsigned kMaxCopyRecords = 64;        // results kept per nexus
inline constexpr uint32_t kCopyChunkBytes = 1u << 20;  // read, then written, as one
inline constexpr unsigned kCopyChunksInFlight = 2;     // per copy

// --- images of Ceph
inline constexpr unsigned kMaxImageRequests = 4096;  // in librbd, per image; more: BUSY
// In librados, per client, which pools share. Requests to objects: as many as all hosts can have at
// the default window, each in two objects. Bytes: all the memory that there can be for them.
inline constexpr uint64_t kCephInFlight = uint64_t{2} * kMaxConnections * kDefaultCommandWindow;
inline constexpr uint64_t kCephInFlightBytes = kMaxReactors * kMaxReactorMemory;
// Threads that may wait for Ceph, of a pool that is alone, and what waits for them, of each pool.
// All pools together have twice as many threads, and each always one (rbd/workers.h).
inline constexpr unsigned kImageThreads = 32;
inline constexpr unsigned kMaxImageTasks = 1u << 16;
inline constexpr unsigned kImageJobThreads = 4;   // of short jobs, of long ones, of fences: each
inline constexpr unsigned kMaxImageUpdates = 64;  // of a volume's record, waiting
// For a lock that its holder is about to give up; who keeps it longer is left alone.
inline constexpr Nanos kImageHandover = 2 * kSecond;
inline constexpr Nanos kCephConnect = 10 * kSecond;
// How often a client of Ceph looks after its disks and watches: with few images, and at least so
// often with many; in between so that it asks after kCephAsks images a second.
inline constexpr Nanos kCephTick = 500 * kMillisecond;
inline constexpr Nanos kCephTickOfMany = 4 * kSecond;
inline constexpr unsigned kCephAsks = 100;
// An image's opening, lock and all: whoever died without a word is given up by Ceph after 30 s.
inline constexpr Nanos kImageOpens = 45 * kSecond;
inline constexpr Nanos kImageCloses = 5 * kSecond;    // at the end of the process
inline constexpr unsigned kMaxPoolImages = 1u << 17;  // listed at once

// --- configuration
inline constexpr size_t kMaxConfigBytes = size_t{4} << 20;  // one file
inline constexpr Nanos kUnitLeaves = 2 * kSecond;  // for a removed LUN to let go of its file
inline constexpr size_t kMaxConfigErrors = 50;     // told at once
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
inline constexpr size_t kStreamQueue = 16384;  // messages to be sent; then the stream begins anew
inline constexpr int kStreamMessageBytes = 64 << 20;
inline constexpr Nanos kStreamOpening = 5 * kSecond;  // from the call to the welcome
inline constexpr Nanos kStreamBackoffLeast = 100 * kMillisecond;
inline constexpr Nanos kStreamBackoffMost = 5 * kSecond;
inline constexpr Nanos kStreamSettled = 10 * kSecond;  // lived so long, it counts as a good one
inline constexpr Nanos kStreamSilence =
    2 * kSecond;  // then an HTTP/2 ping, answered within as long
inline constexpr size_t kMaxDesiredObjects = 1u << 17;  // of one gateway
inline constexpr size_t kMaxDesiredBytes = size_t{256} << 20;
inline constexpr unsigned kControlThreads = 16;  // that may wait for disks and holders of locks
inline constexpr Nanos kLockPollLeast = 5 * kMillisecond;
inline constexpr Nanos kLockPollMost = 250 * kMillisecond;
// An owner that can't have its volume's lock by then has failed to open it, for good in that epoch.
inline constexpr Nanos kLockGivesUp = 10 * kSecond;
inline constexpr Nanos kClientAgain = 5 * kSecond;       // a client of Ceph that isn't recorded
inline constexpr Nanos kPoolAgain = 2 * kSecond;         // a pool that couldn't be reached
inline constexpr Nanos kLoadAgain = 250 * kMillisecond;  // reservations that couldn't be loaded
inline constexpr size_t kMaxHandoverRequest = 256;       // bytes of one request for a lock
inline constexpr size_t kMaxVolumeRecord = size_t{64} << 20;
inline constexpr size_t kMaxReservationState = size_t{1} << 20;  // bytes in a commit
// How long the control plane has, after a start, until the last life's desired state is applied.
inline constexpr Nanos kStateFromDisk = 2 * kSecond;
inline constexpr Nanos kApplyAgain = 5 * kSecond;  // what was refused
// How long the number of a LUN that hosts are shown no more is no other volume's, in seconds by the
// wall clock. Less than the control plane's quarantine (24 h), or a gateway would refuse for a
// moment what that allows again.
inline constexpr int64_t kLunNumberHeld = 23 * 3600;
inline constexpr Nanos kObserveSessions = 1 * kSecond;
inline constexpr Nanos kObservePools = 10 * kSecond;
inline constexpr Nanos kReportLoginFailures = 10 * kSecond;
inline constexpr size_t kMaxJobs = 256;  // waiting; more are not taken, and sent again

// --- admin socket and log
inline constexpr size_t kMaxAdminRequest = 4096;      // bytes of one line
inline constexpr unsigned kMaxAdminRequests = 64;     // per connection
inline constexpr Nanos kAdminPatience = 5 * kSecond;  // per connection
inline constexpr size_t kLogQueue = 8192;             // lines; the oldest give way
inline constexpr unsigned kLogLinesPerSecond = 500;   // below error; the rest is counted

}  // namespace sluice::limits
