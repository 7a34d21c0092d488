// Applies a configuration: opens backends, creates units, changes the exports. It is atomic as far
// as possible: all steps that can fail come before the first change that hosts can see, except for
// size changes, which can't be undone.
//
// Threads: one control thread. Sessions continue, but if a target is removed or its hosts change,
// the access of its sessions is reviewed.
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
  std::shared_ptr<lun::ReservationStore> store;  // null: no APTPL
  std::function<Result<std::unique_ptr<backend::Backend>>(const backend::Spec&)> open =
      backend::open;
  // Units that earlier changes removed. Their users release them asynchronously, and with the last
  // one the lock on the file. A change that opens files waits for that, at most
  // limits::kUnitLeaves.
  std::vector<std::weak_ptr<lun::Unit>>* leaving = nullptr;
  // Sessions of this target may have lost their access; called when new logins already use the new
  // state.
  std::function<void(const std::string& iqn)> review = [](const std::string&) {};
};

Result<void> apply(const Changes& changes, const Environment& environment);

lun::HostAccess access_of(const HostConfig& host);

}  // namespace sluice::config
