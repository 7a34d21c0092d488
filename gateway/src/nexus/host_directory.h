// The hosts that a gateway knows, by initiator name. A login by a name is asked for the same proof
// whatever target it names, so that nobody learns without a secret which targets exist.
//
// Filled by one thread, then read by any; it never changes after Exports::set_hosts().
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
  // Adds all initiator names of `host`; no names: any initiator. Where a name has several entries,
  // the first that asks for CHAP counts, otherwise the first.
  void add(const HostAccess& host);
  // The entry of this initiator, otherwise the one for any initiator; nullptr: there is neither.
  const HostAccess* find(std::string_view initiator) const;
  // Some host must prove itself by CHAP.
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
