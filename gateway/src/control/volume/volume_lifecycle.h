// The states of a volume on this gateway, and the transitions between them. Volume (volume.h) does
// the work of each state.
//
//   no storage ──> kLocking ──> kLocked ──> kLoading ──> kClaiming ──> kServing
//       ▲             │            │           │            │             │
//       │             ▼            ▼           ▼            ▼             ▼
//       └──────────────────── kClosing <──────────────── kReleasing or kFencing
//
// kClosing is left out if the storage is already closed.
//
// Threads: enter() one at a time; the other members on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace sluice::control {

class VolumeLifecycle {
 public:
  enum class State : uint8_t {
    // --- No lock, and no storage is open. A newer order, or the removal of the volume, ends these
    // states.
    kNew,         // No order has arrived.
    kFollowing,   // FORWARDER: the unit has the role that the order gives to it.
    kYielded,     // ACQUIRING, but another gateway requested the lock with an order that is not
                  // older. Only an order that is newer than that one ends this state.
    kEpochOver,   // OWNER or RELEASING in an epoch that is final here: the volume was closed or
                  // failed to open in it, or its lock was requested. It is not served again in it.
    kLockFailed,  // ACQUIRING: the lock can't be taken. Every step() tries again.

    // --- The data is opened. A failure, the removal, and an order of another role end these
    // states.
    kLocking,   // ACQUIRING or OWNER: the storage opens, or another gateway has the lock. Ends when
                // the storage has opened, or an owner has waited for too long.
    kLocked,    // The lock is held and the record names this process. OWNER ends this state.
    kLoading,   // The reservations are requested. Ends with the answer: kClaiming, or kLocked to
                // try again. A newer epoch also leads to kLocked.
    kClaiming,  // The record of the new owner is being written. Ends when it is durable. A newer
                // epoch leads to kLocked.

    // --- The unit has the backend.
    kServing,    // Commands run. A newer epoch or a lost lock leads to kFencing. An order to
                 // release or forward, a yielded lock and the removal lead to kReleasing.
    kReleasing,  // The unit finishes its commands and flushes. Ends when its backend is closed.
    kFencing,    // The unit aborts its commands. Ends when its backend is closed.

    // --- The end of the storage, and of the volume.
    kClosing,  // The lock is released, but the storage is not closed yet. Ends when it is.
    kRemoved,  // The removal is complete. No state follows.
  };

  // `volume`: its uid, for the log.
  explicit VolumeLifecycle(std::string volume) : volume_(std::move(volume)) {}

  State state() const { return state_; }
  // Requires may_follow(state(), next).
  void enter(State next);

  // This gateway holds the lock.
  bool holds_lock() const;
  // This gateway holds the lock, and the unit has no backend yet.
  bool is_opening() const;
  // No lock, and no storage is open or being opened.
  bool has_no_storage() const;

  // Whether `to` may follow `from`; a state may follow itself.
  static bool may_follow(State from, State to);
  static const char* name_of(State state);

 private:
  const std::string volume_;
  std::atomic<State> state_{State::kNew};
};

}  // namespace sluice::control
