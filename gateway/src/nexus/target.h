// A target: its LUNs, its ports, the hosts that may log in, and its I_T nexuses.
//
// Threads: any reactor may look up and takes a short lock; the I/O path never does (a Nexus stores
// what it needs). One control thread makes the changes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/reactors.h"
#include "commands/command_context.h"
#include "unit/attached_nexus.h"
#include "unit/nexus_id.h"
#include "unit/target_port.h"

namespace sluice::lun {

class Nexus;
class TokenStore;
class Unit;
struct MappedLun;
using LunMap = std::vector<MappedLun>;  // sorted by LUN

// One direction of CHAP (RFC 7143 §12.1.3). The secret is never logged or printed.
struct ChapCredential {
  // CHAP_N, 1 to 255 bytes. A CHAP_N that the peer sends never matches an empty name.
  std::string user;
  // 12 to 255 bytes (96 bits at least); empty: this direction is not configured.
  std::string secret;
  // The secret alone decides: a credential without its name must not mean "no authentication".
  bool configured() const { return !secret.empty(); }
  bool operator==(const ChapCredential&) const = default;
};

// The hosts that may log in to a target, and their authentication.
struct HostAccess {
  std::vector<std::string> initiators;  // iSCSI names, lower case; empty: any initiator
  // If configured, the initiator must authenticate with it. access_for() sets the name from
  // chap_users.
  ChapCredential chap;
  // CHAP_N by initiator, in the order of `initiators`; empty: chap.user for all.
  std::vector<std::string> chap_users = {};
  // If configured, the target authenticates with it when the initiator asks; else it refuses.
  ChapCredential mutual;
  bool read_only = false;
  std::string host = {};  // the control plane's id of the host; empty: none
  // The portals in SendTargets answers, nearest first, as "host:port,portal-group-tag"; empty: all
  // of this gateway.
  std::vector<std::string> portals = {};
  // A login at another portal of this gateway is redirected to the first of them.
  bool redirect = false;
  // of each of its initiators with one target on this gateway; 0: unlimited
  unsigned max_sessions = 0;
  bool operator==(const HostAccess&) const = default;
};

// The part of a Nexus that its target uses.
class TargetNexus : public NexusContext {
 public:
  using NexusContext::NexusContext;
  // --- on its reactor
  virtual void refresh_luns() = 0;
  // Drops the nexus if it maps `unit` but has not used it yet.
  virtual void drop_if_unused(const Unit& unit, const char* why) = 0;
};

class Target final : public ExportingTarget, public std::enable_shared_from_this<Target> {
 public:
  Target(std::string iqn, std::string alias, uint16_t group);
  ~Target() override;

  const std::string& iqn() const { return iqn_; }
  const std::string& alias() const { return alias_; }
  uint16_t target_port_group() const { return group_; }  // ALUA; one per gateway (DESIGN §1)

  struct LunEntry {
    uint64_t lun = 0;
    std::shared_ptr<Unit> unit;
    bool read_only = false;  // write protected in this target
    bool operator==(const LunEntry&) const = default;
  };
  std::vector<LunEntry> luns() const;             // sorted by number
  std::shared_ptr<const LunMap> lun_map() const;  // the same without a copy
  // The unit that a designation descriptor names (SPC-5 §7.7.6); nullptr: none.
  std::shared_ptr<Unit> unit_by_designator(ByteView designator) const;
  std::vector<HostAccess> hosts() const;
  // The same without copies of secrets. `visit` must not use the target.
  void visit_hosts(const std::function<void(const HostAccess&)>& visit) const;
  // Affects future logins only. False: this access list is in force already.
  bool set_hosts(std::vector<HostAccess> hosts);
  // The entry that admits `initiator`, with the name for its authentication. False: no entry does.
  bool access_for(std::string_view initiator, HostAccess* out) const;

  // Relative target port ids of the group, for REPORT TARGET PORT GROUPS; empty: only the port that
  // received the command is known.
  std::vector<uint16_t> relative_ports() const;
  void set_relative_ports(std::vector<uint16_t> ports);

  // All ports of the path set, the same on every gateway (R11); empty: only relative_ports().
  std::vector<TargetPort> ports() const;
  void set_ports(std::vector<TargetPort> ports);
  // ports(), else relative_ports(), else the port of the nexus `id`; never empty.
  std::vector<TargetPort> ports_known_to(const NexusId& id) const;
  // The port of the nexus `id`. The result refers to the target.
  scsi::PortIdentity port_of(const NexusId& id) const;
  // Of this gateway's portal group; nullopt: not listed.
  std::optional<uint16_t> relative_port_of(uint16_t tpgt) const;

  // Replaces the LUN map; posts refresh_luns() to every live nexus. An unchanged map raises no
  // 3F/0E (REPORTED LUNS DATA HAS CHANGED).
  void set_luns(std::vector<LunEntry> luns, Reactors& reactors);

  // `part` is the part of `nexus` that the target uses.
  void add(const std::shared_ptr<Nexus>& nexus, TargetNexus& part);
  void remove(const Nexus* nexus);
  std::vector<std::shared_ptr<Nexus>> nexuses() const;
  std::vector<NexusId> nexus_ids() const;
  void drop_unused_nexuses(const std::shared_ptr<Unit>& unit, Reactors& reactors, const char* why,
                           const std::shared_ptr<Countdown>& all) override;
  // Records that the nexus was lost, so that its successor reports 29/07; take_lost() removes the
  // record.
  void note_lost(const NexusId& id);
  bool take_lost(const NexusId& id);

  TokenStore& tokens() const { return *tokens_; }

 private:
  struct Known {
    std::weak_ptr<Nexus> nexus;
    TargetNexus* part = nullptr;
  };
  struct Alive {
    std::shared_ptr<Nexus> nexus;
    TargetNexus* part = nullptr;
  };
  std::vector<Alive> living() const;

  const std::string iqn_;
  const std::string alias_;
  const uint16_t group_;
  mutable std::mutex mutex_;
  std::shared_ptr<const LunMap> luns_;
  std::vector<HostAccess> hosts_;
  std::vector<uint16_t> relative_ports_;
  std::vector<TargetPort> ports_;
  std::vector<Known> nexuses_;
  std::vector<NexusId> lost_;  // bounded; the oldest are dropped first
  std::unique_ptr<TokenStore> tokens_;
};

// A LUN, and the time of its last change (AttentionLog::now()): conditions that are raised on it
// count from then.
struct MappedLun : Target::LunEntry {
  uint64_t since = 0;            // when this unit got this number
  uint64_t protected_since = 0;  // when read_only changed; not before `since`
};

const MappedLun* find_lun(const LunMap& map, uint64_t lun);  // nullptr: none

}  // namespace sluice::lun
