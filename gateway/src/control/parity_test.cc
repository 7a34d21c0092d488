// A configuration file and the control plane define the same exports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/apply.h"
#include "config/parse_fixture.h"
#include "control/desired_target.h"
#include "control/test_objects.h"
#include "desired/exporter_fixture.h"
#include "nexus/login_access.h"

namespace sluice::control {
namespace {

constexpr const char* kDisks = "iqn.2026-11.example:disks";
constexpr const char* kTapes = "iqn.2026-11.example:tapes";
constexpr const char* kOne = "iqn.2026-11.example:one";
constexpr const char* kTwo = "iqn.2026-11.example:two";
constexpr const char* kStranger = "iqn.2026-11.example:stranger";
constexpr const char* kA = "0f7c3a52-1111-4222-8333-94444444444a";
constexpr const char* kB = "0f7c3a52-1111-4222-8333-94444444444b";
constexpr const char* kSecret = "a secret of 16 b";
constexpr const char* kMutual = "another secret..";

struct LunOf {
  uint64_t number;
  const char* volume;
};

// One state in both forms. Host `kOne` has CHAP in both directions, host `kTwo` none.
struct TargetOf {
  const char* iqn;
  std::vector<const char*> initiators;
  std::vector<LunOf> luns;
};
using State = std::vector<TargetOf>;

std::string yaml_of(const State& state) {
  std::string text = "gateway-number: 3\ntargets:" + std::string(state.empty() ? " []" : "") + "\n";
  for (const TargetOf& target : state) {
    text += "- iqn: " + std::string(target.iqn) +
            "\n  hosts:" + (target.initiators.empty() ? " []" : "") + "\n";
    for (const std::string initiator : target.initiators) {
      text += "  - initiators: [" + initiator + "]\n";
      if (initiator != kOne) continue;
      text += "    chap: {user: user, secret: '" + std::string(kSecret) + "'}\n";
      text += "    mutual: {user: store, secret: '" + std::string(kMutual) + "'}\n";
    }
    text += "  luns:" + std::string(target.luns.empty() ? " []" : "") + "\n";
    for (const LunOf& lun : target.luns) {
      text += "  - {id: " + std::to_string(lun.number) + ", uuid: " + lun.volume +
              ", backend: memory, size: 1MiB}\n";
    }
  }
  return text;
}

Snapshot snapshot_of(const State& state) {
  wire::DesiredObject settings;
  settings.mutable_settings()->set_number(3);
  wire::DesiredObject one = host_object("one", "1");
  one.mutable_host()->add_initiators(kOne);
  one.mutable_host()->add_chap_usernames("user");
  one.mutable_host()->mutable_chap()->set_password(kSecret);
  one.mutable_host()->mutable_mutual_chap()->set_password(kMutual);
  wire::DesiredObject two = host_object("two", "1");
  two.mutable_host()->add_initiators(kTwo);
  std::vector<wire::DesiredObject> list{settings, one, two};
  for (const TargetOf& from : state) {
    wire::DesiredObject& target = list.emplace_back();
    target.set_id(from.iqn);
    target.mutable_target()->set_iqn(from.iqn);
    for (const std::string initiator : from.initiators) {
      wire::DesiredAccess& access = *target.mutable_target()->add_access();
      access.set_host_uid(initiator == kOne ? "one" : "two");
      access.set_mutual_chap_username("store");
    }
    for (const LunOf& from_lun : from.luns) {
      wire::DesiredLun& lun = *target.mutable_target()->add_luns();
      lun.set_id(from_lun.number);
      lun.set_volume_uid(from_lun.volume);
    }
  }
  Snapshot snapshot;
  snapshot.objects = std::make_shared<const Objects>(objects_of(list));
  return snapshot;
}

std::string text_of(const lun::LoginAccess& access) {
  const lun::HostAccess& host = access.host;
  return (access.admitted   ? "admitted"
          : access.provable ? "refused"
                            : "refused without a secret") +
         std::string(", chap ") + host.chap.user + "/" + host.chap.secret + ", mutual " +
         host.mutual.user + "/" + host.mutual.secret;
}

// What hosts see of the exports.
std::string seen(const desired::TestExports& of) {
  std::string text;
  for (const auto& target : of.exports.all()) {
    text += target->iqn() + " of group " + std::to_string(target->target_port_group()) + ": " +
            of.luns(target->iqn()) + "\n";
  }
  for (const char* initiator : {kOne, kTwo, kStranger}) {
    for (const char* target : {kDisks, kTapes}) {
      text += std::string(initiator) + " at " + target + ": " +
              text_of(lun::login_access(of.exports, initiator, target)) + "\n";
    }
    text += std::string(initiator) + (of.exports.hosts()->find(initiator) ? " is known\n" : "\n");
  }
  return text;
}

std::string text_of(const desired::Outcome& outcome) {
  std::string text;
  for (const auto* list : {&outcome.added, &outcome.removed, &outcome.access_changed}) {
    for (const std::string& iqn : *list) text += iqn + " ";
    text += "| ";
  }
  for (const auto* list : {&outcome.luns_added, &outcome.luns_removed}) {
    for (const desired::LunName& lun : *list) text += lun.text() + " ";
    text += "| ";
  }
  for (const auto& [iqn, why] : outcome.refused) text += iqn + ": " + why;
  return text;
}

class ParityTest : public testing::Test {
 protected:
  // Both gateways change to `state`; the result is that of the one with a configuration file.
  std::string change(const State& state) {
    const Result<config::Config> config = config::read_yaml(yaml_of(state));
    if (!config) return config.error();
    const desired::Outcome alone = alone_.exporter.apply(config::desired_exports(config.value()));
    const desired::Outcome clustered = clustered_.exporter.apply(update_of(snapshot_of(state)));
    EXPECT_EQ(text_of(alone), text_of(clustered));
    EXPECT_EQ(seen(alone_), seen(clustered_));
    EXPECT_EQ(alone_.reviewed, clustered_.reviewed);
    return text_of(alone);
  }

  static desired::Update update_of(const Snapshot& snapshot) {
    desired::Update update;
    update.complete = true;
    const Objects& all = *snapshot.objects;
    for (auto at = all.first_of(wire::OBJECT_KIND_TARGET); at != all.end(); ++at) {
      update.put.push_back(desired_target((*at)->target(), snapshot).value());
    }
    return update;
  }

  desired::TestExports alone_;
  desired::TestExports clustered_;
};

TEST_F(ParityTest, EquivalentStatesGiveEqualExportsThroughAllChanges) {
  const std::string disks = kDisks;
  const std::string tapes = kTapes;
  EXPECT_EQ(change({{kDisks, {kOne, kTwo}, {{0, kA}, {5, kB}}}, {kTapes, {kTwo}, {}}}),
            disks + " " + tapes + " | | | LUN 0 of " + disks + " LUN 5 of " + disks + " | | ");
  EXPECT_THAT(seen(alone_), testing::HasSubstr(disks + ": admitted, chap user/" + kSecret +
                                               ", mutual store/" + kMutual));
  // A host loses access, and a LUN moves to another target.
  EXPECT_EQ(change({{kDisks, {kTwo}, {{0, kA}}}, {kTapes, {kTwo, kOne}, {{5, kB}}}}),
            "| | " + disks + " " + tapes + " | LUN 5 of " + tapes + " | LUN 5 of " + disks + " | ");
  EXPECT_THAT(alone_.reviewed, testing::ElementsAre(kDisks, kTapes));
  // Numbers change volumes, nothing else.
  EXPECT_EQ(change({{kDisks, {kTwo}, {{0, kB}}}, {kTapes, {kTwo, kOne}, {{5, kA}}}}),
            "| | | LUN 0 of " + disks + " LUN 5 of " + tapes + " | LUN 0 of " + disks +
                " LUN 5 of " + tapes + " | ");
  EXPECT_EQ(alone_.reviewed.size(), 2u);
  EXPECT_EQ(change({{kDisks, {}, {{0, kB}}}}),
            "| " + tapes + " | " + disks + " | | LUN 5 of " + tapes + " | ");
  EXPECT_EQ(change({}), "| " + disks + " | | | LUN 0 of " + disks + " | ");
}

}  // namespace
}  // namespace sluice::control
