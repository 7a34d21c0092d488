#include "config/apply.h"

#include <cassert>
#include <set>

#include "config/uuid.h"

namespace sluice::config {
namespace {

lun::ChapCredential credential_of(const ChapConfig& chap) { return {chap.user, chap.secret}; }

lun::HostAccess access_of(const HostConfig& host) {
  return {.initiators = host.initiators,
          .chap = credential_of(host.chap),
          .mutual = credential_of(host.mutual),
          .read_only = host.read_only};
}

// Those of this gateway, in REPORT TARGET PORT GROUPS: one per portal group.
std::vector<uint16_t> relative_ports(const Config& config) {
  std::set<uint16_t> tags;
  for (const PortalConfig& portal : config.portals) tags.insert(portal.tpgt);
  return {tags.begin(), tags.end()};
}

}  // namespace

desired::Update desired_exports(const Config& config) {
  desired::Update update;
  update.complete = true;
  update.discovery = {.policy = lun::DiscoveryPolicy::kOneCredential,
                      .access = {.initiators = {},
                                 .chap = credential_of(config.discovery.chap),
                                 .mutual = credential_of(config.discovery.mutual)}};
  for (const TargetConfig& from : config.targets) {
    desired::Target& target = update.put.emplace_back();
    target.iqn = from.iqn;
    target.alias = from.alias;
    target.group = config.gateway_number;
    target.relative_ports = relative_ports(config);
    for (const HostConfig& host : from.hosts) target.access.push_back(access_of(host));
    for (const LunConfig& lun : from.luns) {
      target.luns.push_back({.number = lun.id, .volume = format_uuid(lun.uuid)});
    }
  }
  return update;
}

Result<desired::Outcome> apply(const Changes& changes, Volumes& volumes,
                               desired::Exporter& exporter) {
  const Result<void> ready = volumes.prepare(changes);
  if (!ready) return Error{ready.error()};
  desired::Outcome outcome = exporter.apply(desired_exports(changes.in_force));
  assert(outcome.refused.empty());  // every unit exists
  volumes.leave_unused();
  return outcome;
}

}  // namespace sluice::config
