// What release(), fence() and their steps share.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/reactors.h"
#include "lun/command.h"
#include "lun/unit.h"

namespace sluice::lun {

// A unit on its way to having no backend. Guarded by the unit's mutex: `fenced` and `done`.
struct Closing {
  std::shared_ptr<Unit> unit;
  Reactors* reactors = nullptr;
  bool fenced = false;
  std::vector<std::function<void(bool flushed)>> done;
  RangeHold look;  // all blocks, on reactor 0
  backend::Io flush;
  std::shared_ptr<Closing> alive;  // while `look` or `flush` point here
};

// Runs `what` for each I_T_L nexus that is there now, posted to its reactor.
void on_every_itl(Unit& unit, Reactors& reactors, std::function<void(Itl&)> what);

}  // namespace sluice::lun
