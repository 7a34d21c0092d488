#include "nexus/target.h"

#include <algorithm>

#include "base/limits.h"
#include "commands/copies/tokens.h"
#include "scsi/identity.h"
#include "unit/attention_log.h"
#include "unit/unit.h"

namespace sluice::lun {
namespace {

// Nexuses remembered as lost, per target: enough for every connection to fail at once.
constexpr size_t kMaxLost = limits::kMaxConnections + limits::kMaxForwardingConnections;

}  // namespace

const MappedLun* find_lun(const LunMap& map, uint64_t lun) {
  const auto at = std::lower_bound(map.begin(), map.end(), lun,
                                   [](const MappedLun& m, uint64_t l) { return m.lun < l; });
  return at != map.end() && at->lun == lun ? &*at : nullptr;
}

Target::Target(std::string iqn, std::string alias, uint16_t group)
    : iqn_(std::move(iqn)),
      alias_(std::move(alias)),
      group_(group),
      luns_(std::make_shared<LunMap>()),
      tokens_(std::make_unique<TokenStore>()) {}

Target::~Target() = default;

std::vector<Target::LunEntry> Target::luns() const {
  const std::shared_ptr<const LunMap> map = lun_map();
  return {map->begin(), map->end()};
}

std::shared_ptr<const LunMap> Target::lun_map() const {
  std::lock_guard lock(mutex_);
  return luns_;
}

std::shared_ptr<Unit> Target::unit_by_designator(ByteView designator) const {
  for (const LunEntry& entry : luns()) {
    if (scsi::designates(designator, entry.unit->scsi_identity())) return entry.unit;
  }
  return nullptr;
}

std::vector<HostAccess> Target::hosts() const {
  std::lock_guard lock(mutex_);
  return hosts_;
}

void Target::visit_hosts(const std::function<void(const HostAccess&)>& visit) const {
  std::lock_guard lock(mutex_);
  for (const HostAccess& host : hosts_) visit(host);
}

bool Target::set_hosts(std::vector<HostAccess> hosts) {
  std::lock_guard lock(mutex_);
  if (hosts == hosts_) return false;
  hosts_ = std::move(hosts);
  return true;
}

// An entry that names the initiator takes precedence over one for any initiator, in any order.
bool Target::access_for(std::string_view initiator, HostAccess* out) const {
  std::lock_guard lock(mutex_);
  const HostAccess* found = nullptr;
  for (const HostAccess& host : hosts_) {
    const auto& names = host.initiators;
    if (std::find(names.begin(), names.end(), initiator) != names.end()) {
      found = &host;
      break;
    }
    if (names.empty() && !found) found = &host;
  }
  if (found == nullptr) return false;
  *out = *found;
  if (!found->chap_users.empty()) {
    const auto at = std::find(found->initiators.begin(), found->initiators.end(), initiator) -
                    found->initiators.begin();
    out->chap.user =
        static_cast<size_t>(at) < found->chap_users.size() ? found->chap_users[at] : "";
  }
  return true;
}

void Target::set_luns(std::vector<LunEntry> luns, Reactors& reactors) {
  std::sort(luns.begin(), luns.end(),
            [](const LunEntry& a, const LunEntry& b) { return a.lun < b.lun; });
  auto map = std::make_shared<LunMap>();
  map->reserve(luns.size());
  {
    std::lock_guard lock(mutex_);
    const auto same = [](const LunEntry& a, const LunEntry& b) { return a == b; };
    if (std::ranges::equal(*luns_, luns, same)) return;
    const uint64_t now = AttentionLog::next();
    for (LunEntry& entry : luns) {
      MappedLun lun{std::move(entry), now, now};
      const MappedLun* before = find_lun(*luns_, lun.lun);
      if (before && before->unit == lun.unit) {
        lun.since = before->since;
        if (before->read_only == lun.read_only) lun.protected_since = before->protected_since;
      }
      map->push_back(std::move(lun));
    }
    luns_ = std::move(map);
  }
  for (const MappedLun& lun : *lun_map()) lun.unit->add_target(shared_from_this());
  for (const Alive& alive : living()) {
    reactors.post(alive.part->reactor_context().reactor, [alive] { alive.part->refresh_luns(); });
  }
}

void Target::set_relative_ports(std::vector<uint16_t> ports) {
  std::lock_guard lock(mutex_);
  relative_ports_ = std::move(ports);
}

std::vector<uint16_t> Target::relative_ports() const {
  std::lock_guard lock(mutex_);
  return relative_ports_;
}

std::vector<TargetPort> Target::ports() const {
  std::lock_guard lock(mutex_);
  return ports_;
}

void Target::set_ports(std::vector<TargetPort> ports) {
  std::lock_guard lock(mutex_);
  ports_ = std::move(ports);
}

std::vector<TargetPort> Target::ports_known_to(const NexusId& id) const {
  std::lock_guard lock(mutex_);
  if (!ports_.empty()) return ports_;
  std::vector<TargetPort> own;
  for (const uint16_t relative : relative_ports_) {
    own.push_back({.group = group_, .relative_port = relative});
  }
  if (own.empty()) own.push_back({.group = group_, .relative_port = id.relative_target_port});
  return own;
}

scsi::PortIdentity Target::port_of(const NexusId& id) const {
  return {.target_name = iqn_,
          .portal_group = id.target_portal_group,
          .relative_target_port = id.relative_target_port,
          .target_port_group = group_};
}

std::optional<uint16_t> Target::relative_port_of(uint16_t tpgt) const {
  std::lock_guard lock(mutex_);
  for (const TargetPort& port : ports_) {
    if (port.group == group_ && port.tpgt == tpgt) return port.relative_port;
  }
  return std::nullopt;
}

void Target::add(const std::shared_ptr<Nexus>& nexus, TargetNexus& part) {
  std::lock_guard lock(mutex_);
  std::erase_if(nexuses_, [](const Known& known) { return known.nexus.expired(); });
  nexuses_.push_back({nexus, &part});
}

void Target::remove(const Nexus* nexus) {
  std::lock_guard lock(mutex_);
  std::erase_if(nexuses_, [nexus](const Known& known) {
    const auto alive = known.nexus.lock();
    return !alive || alive.get() == nexus;
  });
}

std::vector<Target::Alive> Target::living() const {
  std::vector<Alive> all;
  std::lock_guard lock(mutex_);
  for (const Known& known : nexuses_) {
    if (auto nexus = known.nexus.lock()) all.push_back({std::move(nexus), known.part});
  }
  return all;
}

std::vector<std::shared_ptr<Nexus>> Target::nexuses() const {
  std::vector<std::shared_ptr<Nexus>> all;
  for (Alive& alive : living()) all.push_back(std::move(alive.nexus));
  return all;
}

std::vector<NexusId> Target::nexus_ids() const {
  std::vector<NexusId> ids;
  for (const Alive& alive : living()) ids.push_back(alive.part->id());
  return ids;
}

void Target::drop_unused_nexuses(const std::shared_ptr<Unit>& unit, Reactors& reactors,
                                 const char* why, const std::shared_ptr<Countdown>& all) {
  for (Alive& alive : living()) {
    all->begin();
    const unsigned reactor = alive.part->reactor_context().reactor;
    reactors.post(reactor, [alive = std::move(alive), unit, all, why] {
      alive.part->drop_if_unused(*unit, why);
      all->through();
    });
  }
}

void Target::note_lost(const NexusId& id) {
  std::lock_guard lock(mutex_);
  std::erase(lost_, id);
  if (lost_.size() >= kMaxLost) lost_.erase(lost_.begin());
  lost_.push_back(id);
}

bool Target::take_lost(const NexusId& id) {
  std::lock_guard lock(mutex_);
  return std::erase(lost_, id) != 0;
}

}  // namespace sluice::lun
