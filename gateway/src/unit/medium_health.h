// Health of a unit's medium as the gateway's checks found it (Unit::poll_health,
// Unit::poll_progress).
#pragma once

#include <string>

namespace sluice::lun {

struct MediumHealth {
  bool ready = true;    // false: commands for the medium end with NOT READY
  std::string problem;  // cause and remedy; empty: no problem
  bool stuck = false;   // commands wait for it (Unit::medium_hangs)
  bool errors = false;  // commands ended with its errors a short time ago (unit/error_watch.h)
  bool operator==(const MediumHealth&) const = default;
};

}  // namespace sluice::lun
