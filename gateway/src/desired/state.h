// The desired state of this gateway's exports, as values. config/ translates the configuration file
// to these values, control/ the objects that the control plane sends. exporter.h applies them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nexus/exports.h"
#include "nexus/target.h"

namespace sluice::desired {

// A LUN in messages.
struct LunName {
  std::string iqn;
  uint64_t number = 0;
  bool operator==(const LunName&) const = default;
  std::string text() const { return "LUN " + std::to_string(number) + " of " + iqn; }
};

struct Lun {
  uint64_t number = 0;
  std::string volume = {};  // the name of its unit (units.h)
  bool read_only = false;   // write protected in this target
};

struct Target {
  std::string iqn;
  // These two are fixed when the target is added.
  std::string alias;
  uint16_t group = 1;  // ALUA target port group: the number of this gateway
  // Of this gateway's ports, and of all ports of the path set; see lun::Target.
  std::vector<uint16_t> relative_ports;
  std::vector<lun::TargetPort> ports;
  std::vector<lun::HostAccess> access;
  std::vector<Lun> luns;
  // Why parts of the target, such as a host, are missing from these values: "host 5f0c: ...".
  std::vector<std::string> omitted;
};

// How discovery sessions authenticate.
struct Discovery {
  lun::DiscoveryPolicy policy = lun::DiscoveryPolicy::kOneCredential;
  lun::HostAccess access = {};  // under kOneCredential
};

// A portal that is open.
struct Portal {
  std::string bound = {};
  std::string advertised = {};  // the address in discovery answers; empty: `bound`
  uint16_t tpgt = 1;            // also the relative target port
};

// A change of the desired state.
struct Update {
  std::optional<Discovery> discovery = {};  // nullopt: unchanged
  std::vector<Target> put = {};             // targets to add, or to compare with the present one
  std::vector<std::string> removed = {};    // IQNs
  bool complete = false;                    // the targets that `put` does not name are removed too
};

}  // namespace sluice::desired
