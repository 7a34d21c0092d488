// Where a volume lives, and how it is taken from whoever has it (DESIGN R2). What asks another
// machine (images of Ceph) never waits for it here: it answers "pending", and calls the `wake` that
// the place was made with once it is worth being asked again.
//
// Threads: a Volume's turns, one at a time; update() on any.
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

class Place {
 public:
  struct Opened {
    std::unique_ptr<backend::Backend> backend = nullptr;  // null: not opened
    bool held = false;                                    // by somebody else's lock; try again
    std::string problem = {};                             // why it is not, and the mend
    bool pending = false;                                 // being opened; asked again after `wake`
  };
  enum class Claim : uint8_t { kDone, kPending };
  enum class Growth : uint8_t { kDone, kPending };

  virtual ~Place() = default;
  // Opens the data and takes its lock: the one on the description that will do the I/O, or the
  // image's.
  virtual Opened open(const wire::DesiredVolume& volume) = 0;
  // As found beside the data, under the lock or before it.
  virtual Result<std::optional<Record>> record() = 0;
  // By whoever holds the lock: an older epoch than the recorded one is refused. Pending: asked
  // again with the same record after `wake`.
  virtual Result<Claim> claim(const Record& record, Outlasts outlasts) = 0;
  // Refused unless this process is recorded, in this epoch. `done` comes on any thread.
  virtual void update(const Record& record, std::function<void(Result<void>)> done) = 0;
  // Makes what is open at least `bytes` large, where that means asking another machine; else
  // nothing is done here, and the backend grows at once. Pending: asked again after `wake`.
  virtual Result<Growth> grow(uint64_t /*bytes*/) { return Growth::kDone; }
  virtual HolderAnswer ask(const Record& record, uint64_t order) = 0;  // waits kHolderPatience
  virtual Result<void> kill(const Record& record) = 0;
  virtual Holder self() const = 0;
  virtual int64_t allocated_bytes() const = 0;  // 0: not known

  // Whether the recorded reservations may stand in for the control plane's while that can't be
  // asked (R3): where nobody else can have had the data since.
  virtual bool record_suffices() const { return true; }
  // Why what was opened is lost, for good (R4); empty: it isn't. After a `wake`.
  virtual std::string lost() const { return {}; }
  // Nothing more is wanted of it: what it still opens, it closes.
  virtual void let_go() {}
  // Whether nothing of it is open, or on its way there; else `wake` tells when. Only then is the
  // lock free for others.
  virtual bool at_rest() const { return true; }
};

}  // namespace sluice::control
