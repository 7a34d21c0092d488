// The hosts that a gateway knows, by initiator name. The required authentication of a name does not
// depend on the target, so that no peer can find out without a secret which targets exist.
//
// One thread fills it, then any may read; it never changes after Exports::set_hosts().
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "nexus/exports.h"

namespace sluice::lun {

class HostDirectory {
 public:
  ~HostDirectory();
  // Adds all initiator names of `host`; no names: any initiator. If a name has several entries, the
  // first that requires CHAP counts, otherwise the first.
  void add(const HostAccess& host);
  // The entry of this initiator, else the one for any initiator; nullptr: neither exists.
  const HostAccess* find(std::string_view initiator) const;
  // Whether any host must authenticate with CHAP.
  bool asks_chap() const { return asks_chap_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  std::unordered_map<std::string, HostAccess, Hash, std::equal_to<>> by_name_;
  std::optional<HostAccess> anybody_;
  bool asks_chap_ = false;
};

}  // namespace sluice::lun
