// Which volume each LUN of this gateway's targets was (DESIGN R13): a host knows a device by IQN
// and number, and writes to whatever answers there. The control plane quarantines numbers, but one
// that was restored from a backup has lost what was mapped since, and one that lost touch with this
// gateway has let the time pass meanwhile. So who showed a device holds its number, too.
//
// Any thread.
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
  // LUNs by number, each with its volume's uid.
  using Luns = std::map<uint64_t, std::string>;

  explicit LunNumbers(std::string directory) : directory_(std::move(directory)) {}

  // What the last life showed: `last` is its desired state. Times are seconds since 1970. The error
  // is for the log: what the file held is not known.
  Result<void> load(const Objects& last, int64_t now);
  // Why this number can't be that volume's; empty: it can.
  std::string held(const std::string& iqn, uint64_t lun, const std::string& volume,
                   int64_t now) const;
  // All LUNs of a target, as hosts are shown them from now on; none where it is gone.
  void shown(const std::string& iqn, const Luns& luns, int64_t now);
  // Keeps what has left over restarts; before a desired state that doesn't name it any more is
  // kept.
  Result<void> save(int64_t now);

 private:
  struct Entry {
    std::string volume;
    int64_t left = 0;  // when hosts were shown it no more; 0: they are
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
