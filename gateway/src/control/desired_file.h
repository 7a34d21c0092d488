// The desired state on disk. A gateway that restarts while the control plane is unreachable serves
// the same LUNs as before (DESIGN R3). The file contains secrets; its mode is 0600.
//
//   sluice-desired 2
//   <a full StreamUpdate, serialized>
//   <a seal, base/record_text.h>
//
// It also reads version 1, whose seal follows the heading.
#pragma once

#include <optional>
#include <string>

#include "control/desired.h"

namespace sluice::control {

class DesiredFile {
 public:
  // `gateway`: the name of the gateway that owns the state; empty: the name is not checked.
  explicit DesiredFile(std::string directory, std::string gateway = {})
      : directory_(std::move(directory)), gateway_(std::move(gateway)) {}

  Result<void> save(const Snapshot& snapshot) const;
  // Loads the saved state into `desired`. False: there is no file. After an error the gateway logs
  // it, continues without a state and requests a snapshot. A file of another gateway is an error,
  // because that gateway's number is never reused (DESIGN R13) and it may be running.
  Result<bool> load(Desired* desired) const;
  std::string path() const;

 private:
  const std::string directory_;
  const std::string gateway_;
};

// The text of the file; separate for tests.
std::string format_desired(const Snapshot& snapshot);
Result<void> parse_desired(const std::string& text, const std::string& path, Desired* desired,
                           const std::string& gateway = {});

}  // namespace sluice::control
