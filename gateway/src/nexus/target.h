// A target: its LUNs, its ports, the hosts that may log in, and its I_T nexuses.
//
// Threads: lookups may come from any reactor and take a short lock; the I/O path never does (a
// Nexus keeps what it needs). Changes come from one control thread.
#pragma once

#include <cstdint>
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

// A Nexus, as its target sees it.
class TargetNexus : public NexusContext {
 public:
  using NexusContext::NexusContext;
  // --- on its reactor
  virtual void refresh_luns() = 0;
  // Drops the nexus where it reaches `unit` but has not used it yet.
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
    bool read_only = false;  // in this target: its medium is write protected
    bool operator==(const LunEntry&) const = default;
  };
  std::vector<LunEntry> luns() const;             // sorted by number
  std::shared_ptr<const LunMap> lun_map() const;  // the same, not copied
  // The unit that a designation descriptor names (SPC-5 §7.7.6); nullptr: there is none.
  std::shared_ptr<Unit> unit_by_designator(ByteView designator) const;
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
  // ports(), or relative_ports(), or the port by which the nexus `id` came; never empty.
  std::vector<TargetPort> ports_known_to(const NexusId& id) const;
  // The port by which the nexus `id` came. The target outlives the result.
  scsi::PortIdentity port_of(const NexusId& id) const;
  // Of this gateway's portal group; nullopt: not listed.
  std::optional<uint16_t> relative_port_of(uint16_t tpgt) const;

  // Replaces the LUN map; every live nexus gets refresh_luns() posted.
  void set_luns(std::vector<LunEntry> luns, Reactors& reactors);

  // `part` is the part of `nexus` that the target uses.
  void add(const std::shared_ptr<Nexus>& nexus, TargetNexus& part);
  void remove(const Nexus* nexus);
  std::vector<std::shared_ptr<Nexus>> nexuses() const;
  std::vector<NexusId> nexus_ids() const;
  void drop_unused_nexuses(const std::shared_ptr<Unit>& unit, Reactors& reactors, const char* why,
                           const std::shared_ptr<Countdown>& all) override;
  // Remembers that the nexus was lost, so that its successor reports 29/07; take_lost() forgets.
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
  std::vector<NexusId> lost_;  // bounded; oldest forgotten first
  std::unique_ptr<TokenStore> tokens_;
};

// A LUN, and since when it has been as it is (AttentionLog::now()): conditions that are raised on
// it count from there.
struct MappedLun : Target::LunEntry {
  uint64_t since = 0;            // this unit under this number
  uint64_t protected_since = 0;  // read-only or not; not before `since`
};

const MappedLun* find_lun(const LunMap& map, uint64_t lun);  // nullptr: there is none

}  // namespace sluice::lun
