// Where a volume's data is, and how to take it from the gateway that has it (DESIGN R2). Calls to
// another machine (Ceph images) do not block here: they return "pending", and later call the `wake`
// that was passed when the storage was created.
//
// Threads: the volume's strand, one task at a time; update() and reserve() on any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "control/local/files.h"
#include "control/local/lock_handover.h"
#include "control/local/record.h"
#include "control/wire.h"

namespace sluice::control {

// Of VolumeStorage::reserve(). kNone: the file system is full.
enum class Room : uint8_t { kMade, kNone };

class VolumeStorage {
 public:
  struct Opened {
    std::unique_ptr<backend::Backend> backend = nullptr;  // null: not opened
    bool held = false;                                    // another process has the lock; retry
    std::string problem = {};                             // why it failed, with the remedy
    // opening in progress; call again after `wake`
    bool pending = false;
  };
  enum class Claim : uint8_t { kDone, kPending };
  enum class Growth : uint8_t { kDone, kPending };

  virtual ~VolumeStorage() = default;
  // Opens the data and takes its lock: on the file description that does the I/O, or on the image.
  virtual Opened open(const wire::DesiredVolume& volume) = 0;
  // The record found beside the data. It may be called with or without the lock.
  virtual Result<std::optional<Record>> record() = 0;
  // Writes the record; the caller holds the lock. An older epoch than the recorded one is refused.
  // kPending: call again with the same record after `wake`.
  virtual Result<Claim> claim(const Record& record, Outlasts outlasts) = 0;
  // Refused unless the record names this process and this epoch. `done` runs on any thread.
  virtual void update(const Record& record, std::function<void(Result<void>)> done) = 0;
  // Whether room for a record can be lacking. Then reserve() comes before a change that makes it
  // larger.
  virtual bool reserves_room() const { return false; }
  // Makes room for this record, so that update(), and the claim of a later owner, needs no free
  // space. Blocks; on any thread. Nothing has changed if it returns kNone or an error.
  virtual Result<Room> reserve(const Record& /*record*/) { return Room::kMade; }
  // Grows the open data to at least `bytes` if that needs another machine; otherwise the backend
  // grows itself and this does nothing. kPending: call again after `wake`.
  virtual Result<Growth> grow(uint64_t /*bytes*/) { return Growth::kDone; }
  // waits up to kHolderPatience
  virtual HolderAnswer ask(const Record& record, uint64_t order) = 0;
  virtual Result<void> kill(const Record& record) = 0;
  virtual Holder self() const = 0;
  virtual int64_t allocated_bytes() const = 0;  // 0: unknown

  // Whether the recorded reservations can replace those of the control plane while it is
  // unreachable (R3). Only if no other gateway can have had the data since.
  virtual bool record_suffices() const { return true; }
  // Why the opened data is permanently lost (R4); empty: it is not. Changes are announced by
  // `wake`.
  virtual std::string lost() const { return {}; }
  // The volume no longer uses the storage: it closes what it still opens.
  virtual void begin_close() {}
  // Whether nothing is open or being opened. If not, `wake` announces the change. Only then is the
  // lock available to others.
  virtual bool is_closed() const { return true; }
};

}  // namespace sluice::control
