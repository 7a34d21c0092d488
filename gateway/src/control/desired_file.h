// The desired state on disk, so that a gateway that restarts while the control plane is away serves
// what it served (DESIGN R3). It holds secrets: mode 0600.
//
//   sluice-desired 1
//   crc32c 8a9136aa          over everything below
//   <a full StreamUpdate, serialized>
#pragma once

#include <optional>
#include <string>

#include "control/desired.h"

namespace sluice::control {

class DesiredFile {
 public:
  explicit DesiredFile(std::string directory) : directory_(std::move(directory)) {}

  Result<void> save(const Snapshot& snapshot) const;
  // Takes what was saved into `desired`; false: nothing was. The error is for the log: the gateway
  // goes on without, and asks for a snapshot.
  Result<bool> load(Desired* desired) const;
  std::string path() const;

 private:
  const std::string directory_;
};

// The text of the file, apart for tests.
std::string format_desired(const Snapshot& snapshot);
Result<void> parse_desired(const std::string& text, const std::string& path, Desired* desired);

}  // namespace sluice::control
