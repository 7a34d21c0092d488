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
  // `gateway`: whose state it is, by name; empty: whoever's.
  explicit DesiredFile(std::string directory, std::string gateway = {})
      : directory_(std::move(directory)), gateway_(std::move(gateway)) {}

  Result<void> save(const Snapshot& snapshot) const;
  // Takes what was saved into `desired`; false: nothing was. The error is for the log: the gateway
  // goes on without, and asks for a snapshot. Another gateway's is refused: its numbers are that
  // one's for ever (DESIGN R13), and it may be there.
  Result<bool> load(Desired* desired) const;
  std::string path() const;

 private:
  const std::string directory_;
  const std::string gateway_;
};

// The text of the file, apart for tests.
std::string format_desired(const Snapshot& snapshot);
Result<void> parse_desired(const std::string& text, const std::string& path, Desired* desired,
                           const std::string& gateway = {});

}  // namespace sluice::control
