// Which volume each LUN of this gateway's targets showed (DESIGN R13). A host identifies a device
// by IQN and LUN, and writes to any volume that answers there. The control plane quarantines LUN
// numbers, but after a restore from a backup it lacks later mappings. After a partition the
// quarantine may have expired although this gateway still showed the LUN. So each gateway that
// showed a LUN also reserves its number.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/result.h"
#include "control/objects.h"

namespace sluice::control {

class LunNumbers {
 public:
  // Volume uid by LUN.
  using Luns = std::map<uint64_t, std::string>;

  explicit LunNumbers(std::string directory) : directory_(std::move(directory)) {}

  // Loads the file. `last`: the desired state of the previous process. `now`, here and below:
  // seconds since 1970. Error, for the log: the content of the file is unknown.
  Result<void> load(const Objects& last, int64_t now);
  // Why `lun` can't show `volume` yet; empty: it can.
  std::string held(const std::string& iqn, uint64_t lun, const std::string& volume,
                   int64_t now) const;
  // Records all LUNs of a target as shown from `now` on; empty if the target was removed.
  void shown(const std::string& iqn, const Luns& luns, int64_t now);
  // Writes the numbers that are no longer shown to disk. Call it before a desired state without
  // them is saved.
  Result<void> save(int64_t now);

 private:
  struct Entry {
    std::string volume;
    int64_t left = 0;  // when hosts last saw it; 0: it is still shown
  };
  using Entries = std::map<uint64_t, Entry>;
  std::string text(int64_t now) const;
  bool parse(const std::string& text);

  const std::string directory_;
  mutable std::mutex mutex_;
  std::map<std::string, Entries> targets_;
  bool changed_ = false;
};

}  // namespace sluice::control
