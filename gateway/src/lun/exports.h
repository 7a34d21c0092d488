// What this gateway shows to the world: targets, their LUNs and who may come in. Read by login
// and discovery, changed by configuration reloads (later: by the control plane).
//
// Threads: lookups may come from any reactor and take a short lock; the I/O path never does
// (a Nexus keeps what it needs). Changes come from one control thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/reactors.h"
#include "base/result.h"
#include "lun/nexus.h"

namespace sluice::lun {

class HostDirectory;
class Unit;
class TokenStore;

// One direction of CHAP (RFC 7143 §12.1.3). The secret is never logged or printed.
struct ChapCredential {
  // CHAP_N, 1 to 255 bytes. A CHAP_N that the peer sends never matches an empty name.
  std::string user;
  // 12 to 255 bytes (96 bits at least); empty: this direction is not configured.
  std::string secret;
  // The secret alone decides: a credential that lost its name must not become "no authentication".
  bool configured() const { return !secret.empty(); }
};

// Who may log in to a target, and how they prove it.
struct HostAccess {
  std::vector<std::string> initiators;  // iSCSI names, lower case; empty: any initiator
  // Configured: the initiator must authenticate by it. access_for() fills in the name from
  // chap_users.
  ChapCredential chap;
  // CHAP_N by initiator, in the order of `initiators`; empty: chap.user for all.
  std::vector<std::string> chap_users = {};
  // Configured: we authenticate by it if the initiator asks; else we refuse to.
  ChapCredential mutual;
  bool read_only = false;
  std::string host = {};  // the control plane's id of it; empty: there is none
  // Portals that SendTargets shows, nearest first, as "host:port,portal-group-tag"; empty: all of
  // this gateway.
  std::vector<std::string> portals = {};
  // A login at another portal of this gateway than those is sent to the first of them.
  bool redirect = false;
  unsigned max_sessions = 0;  // of each of its initiators with one target here; 0: no limit
};

// A port of a target anywhere in its path set (DESIGN §1).
struct TargetPort {
  uint16_t group = 1;  // number of the gateway
  uint16_t tpgt = 1;
  uint16_t relative_port = 1;
  bool operator==(const TargetPort&) const = default;
};

class Target : public std::enable_shared_from_this<Target> {
 public:
  Target(std::string iqn, std::string alias, uint16_t group);
  ~Target();

  const std::string& iqn() const { return iqn_; }
  const std::string& alias() const { return alias_; }
  uint16_t target_port_group() const { return group_; }  // ALUA; one per gateway (DESIGN §1)

  struct LunEntry {
    uint64_t lun = 0;
    std::shared_ptr<Unit> unit;
    bool read_only = false;  // in this target: its medium is write protected
    bool operator==(const LunEntry&) const = default;
  };
  std::vector<LunEntry> luns() const;                            // sorted by number
  std::shared_ptr<const LunMap> lun_map() const;                 // the same, not copied
  std::shared_ptr<Unit> unit_by_naa(ByteView designator) const;  // for third-party copies
  std::vector<HostAccess> hosts() const;
  void set_hosts(std::vector<HostAccess> hosts);  // future logins only
  // The entry that admits `initiator`, with the name by which this initiator authenticates. False:
  // no entry admits it.
  bool access_for(std::string_view initiator, HostAccess* out) const;

  // Relative target port ids in the group, for REPORT TARGET PORT GROUPS; empty: only the one a
  // command came in by is known.
  std::vector<uint16_t> relative_ports() const;
  void set_relative_ports(std::vector<uint16_t> ports);

  // Every port of the path set, the same on every gateway (R11); empty: relative_ports() above.
  std::vector<TargetPort> ports() const;
  void set_ports(std::vector<TargetPort> ports);
  // Of this gateway's portal group; nullopt: not listed.
  std::optional<uint16_t> relative_port_of(uint16_t tpgt) const;

  // Replaces the LUN map; every live nexus gets refresh_luns() posted.
  void set_luns(std::vector<LunEntry> luns, Reactors& reactors);

  void add(const std::shared_ptr<Nexus>& nexus);
  void remove(const Nexus* nexus);
  std::vector<std::shared_ptr<Nexus>> nexuses() const;
  // Remembers that the nexus was lost, so that its successor reports 29/07; take_lost() forgets.
  void note_lost(const NexusId& id);
  bool take_lost(const NexusId& id);

  TokenStore& tokens() const { return *tokens_; }

 private:
  const std::string iqn_;
  const std::string alias_;
  const uint16_t group_;
  mutable std::mutex mutex_;
  std::shared_ptr<const LunMap> luns_;
  std::vector<HostAccess> hosts_;
  std::vector<uint16_t> relative_ports_;
  std::vector<TargetPort> ports_;
  std::vector<std::weak_ptr<Nexus>> nexuses_;
  std::vector<NexusId> lost_;  // bounded; oldest forgotten first
  std::unique_ptr<TokenStore> tokens_;
};

// A LUN, and since when it has been as it is (AttentionLog::now()): what a nexus is told of it
// counts from there.
struct MappedLun : Target::LunEntry {
  uint64_t since = 0;            // this unit under this number
  uint64_t protected_since = 0;  // read-only or not; not before `since`
};

const MappedLun* find_lun(const LunMap& map, uint64_t lun);  // nullptr: there is none

// A portal as discovery shows it (DESIGN §1: listen and advertised addresses may differ).
struct PortalInfo {
  std::string address;  // "192.0.2.1:3260" or "[2001:db8::1]:3260"; a wildcard address is answered
                        // with the address the initiator came to
  uint16_t tpgt = 1;
  uint16_t relative_port = 1;
};

// What a discovery session must prove.
enum class DiscoveryPolicy : uint8_t {
  kOneCredential,  // the same for every initiator: Exports::discovery_access()
  kHosts,          // what its host must prove at a target; other initiators are refused
};

class Exports {
 public:
  std::shared_ptr<Target> find(std::string_view iqn) const;  // nullptr: no such target
  std::vector<std::shared_ptr<Target>> all() const;          // sorted by name
  void add(std::shared_ptr<Target> target);                  // replaces one of the same name
  void remove(std::string_view iqn);

  std::vector<PortalInfo> portals() const;
  void set_portals(std::vector<PortalInfo> portals);

  // All hosts of all targets, for lun/login_access.h; null: none were set.
  std::shared_ptr<const HostDirectory> hosts() const;
  void set_hosts(std::shared_ptr<const HostDirectory> hosts);

  DiscoveryPolicy discovery_policy() const;
  void set_discovery_policy(DiscoveryPolicy policy);
  // CHAP for discovery sessions under DiscoveryPolicy::kOneCredential; empty: none asked.
  HostAccess discovery_access() const;
  void set_discovery_access(HostAccess access);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Target>, std::less<>> targets_;
  std::vector<PortalInfo> portals_;
  std::shared_ptr<const HostDirectory> hosts_;
  DiscoveryPolicy discovery_policy_ = DiscoveryPolicy::kOneCredential;
  HostAccess discovery_;
};

}  // namespace sluice::lun
