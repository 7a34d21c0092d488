// Makes a configuration true: opens backends, makes units, changes what is exported. All or
// nothing as far as the world allows: everything that can fail comes before the first change that
// a host can see, but for sizes, which can't be taken back.
//
// Threads: one control thread. Sessions live on; those of a target that is gone keep running
// without LUNs until they end.
#pragma once

#include <functional>
#include <memory>

#include "backend/backend.h"
#include "base/reactors.h"
#include "base/result.h"
#include "config/changes.h"
#include "lun/exports.h"
#include "lun/reservations.h"

namespace sluice::config {

struct Environment {
  lun::Exports& exports;
  Reactors& reactors;
  std::shared_ptr<lun::ReservationStore> store;  // may be null: no APTPL
  std::function<Result<std::unique_ptr<backend::Backend>>(const backend::Spec&)> open =
      backend::open;
};

Result<void> apply(const Changes& changes, const Environment& environment);

lun::HostAccess access_of(const HostConfig& host);

}  // namespace sluice::config
