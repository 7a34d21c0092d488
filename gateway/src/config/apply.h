// Makes a configuration true: opens backends, makes units, changes what is exported. All or
// nothing as far as the world allows: everything that can fail comes before the first change that
// a host can see, but for sizes, which can't be taken back.
//
// Threads: one control thread. Sessions live on, but where a target is gone or its hosts changed
// each has to show that it still belongs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/reactors.h"
#include "base/result.h"
#include "config/changes.h"
#include "nexus/exports.h"
#include "unit/reservations/reservation_contract.h"

namespace sluice::config {

struct Environment {
  lun::Exports& exports;
  Reactors& reactors;
  std::shared_ptr<lun::ReservationStore> store;  // may be null: no APTPL
  std::function<Result<std::unique_ptr<backend::Backend>>(const backend::Spec&)> open =
      backend::open;
  // Units that earlier changes removed: what used them lets go of them in its own time, and with
  // them goes the lock on their file. A change that opens files waits for that, limits::kUnitLeaves
  // at most.
  std::vector<std::weak_ptr<lun::Unit>>* leaving = nullptr;
  // Sessions of this target may have lost their right to be there; called when logins already
  // find what is new.
  std::function<void(const std::string& iqn)> review = [](const std::string&) {};
};

Result<void> apply(const Changes& changes, const Environment& environment);

lun::HostAccess access_of(const HostConfig& host);

}  // namespace sluice::config
