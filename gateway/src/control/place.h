// Where a volume of a local pool lives, and how it is taken from whoever has it (DESIGN R2, local).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "control/lock_handover.h"
#include "control/record.h"
#include "control/wire.h"

namespace sluice::control {

class Place {
 public:
  struct Opened {
    std::unique_ptr<backend::Backend> backend;  // null: not opened
    bool held = false;                          // by somebody else's lock; try again
    std::string problem;                        // why it is not, and the mend
  };
  virtual ~Place() = default;
  // Opens the data and takes the lock on the description that will do the I/O; waits for neither.
  virtual Opened open(const wire::DesiredVolume& volume) = 0;
  virtual Result<std::optional<Record>> record() = 0;
  virtual Result<void> claim(const Record& record, Outlasts outlasts) = 0;
  virtual Result<void> update(const Record& record) = 0;
  virtual HolderAnswer ask(const Record& record, uint64_t order) = 0;  // waits kHolderPatience
  virtual Result<void> kill(const Record& record) = 0;
  virtual Holder self() const = 0;
  virtual int64_t allocated_bytes() const = 0;  // 0: not known
};

}  // namespace sluice::control
