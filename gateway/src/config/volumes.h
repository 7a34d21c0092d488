// The volumes of a configuration: their backends are open, and their units exist while a LUN of the
// configuration shows them.
//
// Threads: one control thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "config/changes.h"
#include "desired/units.h"
#include "unit/reservations/reservation_contract.h"

namespace sluice::config {

class Volumes final : public desired::Units {
 public:
  struct Setup {
    unsigned reactors = 1;                         // their number
    std::shared_ptr<lun::ReservationStore> store;  // null: no APTPL
    std::function<Result<std::unique_ptr<backend::Backend>>(const backend::Spec&)> open =
        backend::open;
  };
  explicit Volumes(Setup setup) : setup_(std::move(setup)) {}

  // Opens the backends of new volumes, changes sizes and write caches. Call it before the exports
  // change, and leave_unused() afterwards. Error: the present volumes stay; sizes and write caches
  // that have changed already can't be undone. It waits for removed units to release their files,
  // at most limits::kUnitLeaves.
  Result<void> prepare(const Changes& changes);
  // Ends the units that the configuration no longer has: a command on its way to one finds it
  // absent.
  void leave_unused();

  // --- desired::Units, for the configuration that was prepared last
  Result<std::shared_ptr<lun::Unit>> unit_for(const std::string& iqn,
                                              const desired::Lun& lun) override;
  void shown(const std::string&, const std::vector<lun::Target::LunEntry>&) override {}

 private:
  using ByUuid = std::map<std::string, std::shared_ptr<lun::Unit>>;

  void wait_for_leaving();
  Result<ByUuid> open(const Changes& changes);
  Result<std::shared_ptr<lun::Unit>> open_one(const LunConfig& lun);

  const Setup setup_;
  ByUuid units_;
  ByUuid next_;
  // Units that earlier changes removed. Their users release them asynchronously, and with the last
  // one the lock on the file.
  std::vector<std::weak_ptr<lun::Unit>> leaving_;
};

}  // namespace sluice::config
