#include "config/apply.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "backend/spec.h"
#include "base/log.h"
#include "config/uuid.h"
#include "nexus/host_directory.h"
#include "unit/unit.h"
#include "unit/write_cache.h"

namespace sluice::config {
namespace {

using Units = std::map<Uuid, std::shared_ptr<lun::Unit>>;

constexpr lun::UnitAttention kModeParametersChanged{0x2a, 0x01};  // SPC-5 table 51

class Applier {
 public:
  Applier(const Changes& changes, const Environment& environment)
      : changes_(changes), env_(environment) {
    for (const auto& target : env_.exports.all()) {
      for (const auto& entry : target->luns()) present_[entry.unit->identity().uuid] = entry.unit;
    }
  }

  Result<void> run() {
    for (auto step : {&Applier::open_all, &Applier::resize_all, &Applier::set_caches}) {
      Result<void> done = (this->*step)();
      if (!done) return done;
    }
    follow_devices();
    show();
    return {};
  }

 private:
  static lun::UnitIdentity identity_of(const LunConfig& lun) {
    lun::UnitIdentity identity;
    identity.uuid = lun.uuid;
    identity.serial = format_uuid(lun.uuid);
    std::erase(identity.serial, '-');
    identity.product = lun.product;
    identity.oui = lun.oui;
    identity.block_size = lun.spec.block_size;
    identity.physical_block_size = lun.physical_block_size;
    return identity;
  }

  // A LUN that went and comes again would find its file locked by itself.
  void wait_for_leaving() {
    if (!env_.leaving || changes_.opens.empty()) return;
    std::vector<std::weak_ptr<lun::Unit>>& leaving = *env_.leaving;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(limits::kUnitLeaves);
    for (;;) {
      std::erase_if(leaving, [](const auto& unit) { return unit.expired(); });
      if (leaving.empty() || std::chrono::steady_clock::now() >= end) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Result<void> open_all() {
    wait_for_leaving();
    for (const TargetConfig& target : changes_.in_force.targets) {
      for (const LunConfig& lun : target.luns) {
        const auto kept = present_.find(lun.uuid);
        if (kept != present_.end() && !changes_.opens.contains(lun.uuid)) {
          units_[lun.uuid] = kept->second;
          continue;
        }
        Result<std::unique_ptr<backend::Backend>> backend = env_.open(lun.spec);
        if (!backend) return Error{LunRef{target.iqn, lun.id, {}}.text() + ": " + backend.error()};
        auto unit = std::make_shared<lun::Unit>(identity_of(lun), std::move(*backend),
                                                env_.reactors.count(), env_.store);
        // Reservations kept over power loss (APTPL) hold before the first host comes in.
        const Result<void> restored = unit->restore_reservations();
        if (!restored)
          return Error{LunRef{target.iqn, lun.id, {}}.text() + ": " + restored.error()};
        units_[lun.uuid] = std::move(unit);
      }
    }
    return {};
  }

  const LunConfig& config_of(const Uuid& uuid) const {
    for (const TargetConfig& target : changes_.in_force.targets) {
      for (const LunConfig& lun : target.luns) {
        if (lun.uuid == uuid) return lun;
      }
    }
    static const LunConfig none;
    return none;
  }

  Result<void> resize(const std::string& name, lun::Unit& unit, uint64_t size) const {
    if (size != 0 && size == unit.backend().size_bytes()) return {};
    const Result<void> done = unit.resize(size);
    if (!done) return Error{name + ": " + done.error()};
    return {};
  }

  // A device without a configured size has its current size. An unresponsive device must not block
  // other changes (DESIGN R15).
  void follow_devices() {
    for (const TargetConfig& target : changes_.in_force.targets) {
      for (const LunConfig& lun : target.luns) {
        const bool follows =
            (backend::is_device(lun.spec) || lun.spec.kind == "rbd") && lun.spec.size == 0;
        if (!follows || changes_.opens.contains(lun.uuid)) continue;
        const Result<void> done =
            resize(LunRef{target.iqn, lun.id, {}}.text(), *units_.at(lun.uuid), 0);
        if (!done) log::warning("a LUN keeps its size", {{"error", done.error()}});
      }
    }
  }

  Result<void> resize_all() {
    for (const LunRef& ref : changes_.luns_resized) {
      Result<void> done = resize(ref.text(), *units_.at(ref.uuid), config_of(ref.uuid).spec.size);
      if (!done) return done;
    }
    return {};
  }

  Result<void> set_caches() {
    for (const LunRef& ref : changes_.caches_changed) {
      lun::Unit& unit = *units_.at(ref.uuid);
      const bool on = config_of(ref.uuid).spec.write_cache;
      const bool was = unit.write_cache();
      const Result<void> done = lun::set_write_cache(unit, on);
      if (!done) return Error{ref.text() + ": " + done.error()};
      if (was == on) continue;  // a host has set it already
      unit.attached().raise(kModeParametersChanged, nullptr);
    }
    return {};
  }

  void show() {
    const Config& config = changes_.in_force;
    env_.exports.set_discovery_access(access_of({.initiators = {},
                                                 .chap = config.discovery.chap,
                                                 .mutual = config.discovery.mutual,
                                                 .read_only = false,
                                                 .line = {}}));
    auto known = std::make_shared<lun::HostDirectory>();
    for (const TargetConfig& target : config.targets) {
      for (const HostConfig& host : target.hosts) known->add(access_of(host));
      show_target(target);
    }
    env_.exports.set_hosts(std::move(known));
    for (const std::string& iqn : changes_.targets_removed) {
      env_.exports.remove(iqn, env_.reactors);
    }
    // A command on its way to a removed unit finds it absent.
    for (const auto& [uuid, unit] : present_) {
      const auto stays = units_.find(uuid);
      if (stays != units_.end() && stays->second == unit) continue;
      unit->raise_gate(lun::Unit::kRemoved);
      if (env_.leaving) env_.leaving->push_back(unit);
    }
    for (const std::string& iqn : changes_.targets_removed) env_.review(iqn);
    for (const std::string& iqn : changes_.hosts_changed) env_.review(iqn);
  }

  void show_target(const TargetConfig& config) {
    std::vector<lun::HostAccess> hosts;
    for (const HostConfig& host : config.hosts) hosts.push_back(access_of(host));
    std::vector<lun::Target::LunEntry> luns;
    for (const LunConfig& lun : config.luns) luns.push_back({lun.id, units_.at(lun.uuid)});
    std::shared_ptr<lun::Target> target = env_.exports.find(config.iqn);
    const bool added = target == nullptr;
    if (added) {
      target =
          std::make_shared<lun::Target>(config.iqn, config.alias, changes_.in_force.gateway_number);
      target->set_relative_ports(relative_ports());
    }
    target->set_hosts(std::move(hosts));
    target->set_luns(std::move(luns), env_.reactors);
    if (added) env_.exports.add(std::move(target));
  }

  // Those of this gateway, in REPORT TARGET PORT GROUPS: one per portal group.
  std::vector<uint16_t> relative_ports() const {
    std::set<uint16_t> tags;
    for (const PortalConfig& portal : changes_.in_force.portals) tags.insert(portal.tpgt);
    return {tags.begin(), tags.end()};
  }

  const Changes& changes_;
  const Environment& env_;
  Units present_;
  Units units_;
};

lun::ChapCredential credential_of(const ChapConfig& chap) { return {chap.user, chap.secret}; }

}  // namespace

Result<void> apply(const Changes& changes, const Environment& environment) {
  return Applier(changes, environment).run();
}

lun::HostAccess access_of(const HostConfig& host) {
  return {.initiators = host.initiators,
          .chap = credential_of(host.chap),
          .mutual = credential_of(host.mutual),
          .read_only = host.read_only};
}

}  // namespace sluice::config
