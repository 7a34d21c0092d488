// What a reload does to what is exported: units that stay are the very same ones.
#include "config/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "config/parse_fixture.h"
#include "config/reload_fixture.h"
#include "nexus/host_directory.h"
#include "unit/reservations/reservations.h"
#include "unit/unit.h"

namespace sluice::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What a directory of reservation records would hold.
class KeptReservations final : public lun::ReservationStore {
 public:
  void commit(const std::string&, const lun::ReservationState&, lun::StoreReply,
              CommitDone) override {
    FAIL() << "a reload changes no reservations";
  }
  void read(const std::string&, lun::StoreReply, ReadDone) override {
    FAIL() << "nothing is in doubt";
  }
  void stop() override {}
  Result<lun::ReservationState> load(const std::string&) override {
    if (corrupt) return Error{"the record is damaged"};
    lun::ReservationState state;
    const lun::NexusId holder{"iqn.2026-11.example:x", {1, 2, 3, 4, 5, 6}, 1, 1};
    state.aptpl = true;
    state.type = lun::ReservationType::kWriteExclusive;
    state.registrations.push_back(
        {.nexus = holder, .key = 0xabc, .all_target_ports = false, .except_ports = {}});
    state.holder = holder;
    return state;
  }
  bool corrupt = false;
};

constexpr const char* kA = "uuid: 0f7c3a52-1111-4222-8333-94444444444a";
constexpr const char* kB = "uuid: 0f7c3a52-1111-4222-8333-94444444444b";

std::string memory(int id, const std::string& rest, const std::string& size = "1MiB") {
  return "  - {id: " + std::to_string(id) + ", backend: memory, size: " + size + ", " + rest +
         "}\n";
}

// A device that has disappeared since it was opened: its size is unknown.
class Unplugged final : public backend::Backend {
 public:
  const backend::Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return 1 << 20; }
  bool submit(backend::Io& io, Aio&) override {
    io.result = -ENODEV;
    return true;
  }
  bool write_cache() const override { return false; }
  Result<void> set_write_cache(bool) override { return {}; }
  Result<backend::Extent> allocation(uint64_t, uint64_t) const override { return Error{"gone"}; }
  Result<void> resize(uint64_t) override { return Error{"/dev/sdx: the device is gone"}; }
  Result<void> check() override { return Error{"gone"}; }

 private:
  const backend::Info info_;
};

class Reload : public testing::Test {
 protected:
  Result<void> load(const std::string& yaml) {
    const Result<Config> next = read_yaml(yaml);
    if (!next) return Error{next.error()};
    const Result<Changes> changes =
        started_ ? diff(config_, next.value()) : from_scratch(next.value());
    if (!changes) return Error{changes.error()};
    if (!started_) start();
    const Result<desired::Outcome> done = apply(changes.value(), *volumes_, *exporter_);
    if (!done) return Error{done.error()};
    config_ = changes.value().in_force;
    started_ = true;
    return {};
  }

  // At the first load, with what the test has set.
  void start() {
    volumes_ = std::make_unique<Volumes>(Volumes::Setup{
        .reactors = reactors_.count(), .store = store_, .open = [this](const backend::Spec& spec) {
          ++opened_;
          return open_(spec);
        }});
    exporter_ = std::make_unique<desired::Exporter>(
        desired::Exporter::Setup{.exports = exports_,
                                 .reactors = reactors_,
                                 .units = *volumes_,
                                 .review = [this](const std::string& iqn) { review_(iqn); }});
  }

  std::shared_ptr<lun::Unit> unit(uint64_t id) const {
    const auto target = exports_.find("iqn.2026-11.example:t");
    if (target == nullptr) return nullptr;
    for (const auto& entry : target->luns()) {
      if (entry.lun == id) return entry.unit;
    }
    return nullptr;
  }

  NoReactors reactors_;
  lun::Exports exports_;
  int opened_ = 0;
  std::vector<std::string> reviewed_;
  std::shared_ptr<lun::ReservationStore> store_;
  std::function<Result<std::unique_ptr<backend::Backend>>(const backend::Spec&)> open_ =
      backend::open;
  std::function<void(const std::string&)> review_ = [this](const std::string& iqn) {
    reviewed_.push_back(iqn);
  };
  std::unique_ptr<Volumes> volumes_;
  std::unique_ptr<desired::Exporter> exporter_;
  Config config_;
  bool started_ = false;
};

TEST_F(Reload, TheFirstLoadExportsEveryLun) {
  const Result<void> done = load(with_luns(memory(0, kA) + memory(300, kB)));
  ASSERT_TRUE(done.ok()) << done.error();
  ASSERT_NE(unit(0), nullptr);
  EXPECT_EQ(unit(300)->blocks(), 2048u);
  EXPECT_EQ(unit(0)->identity().serial,
            "0f7c3a521111422283339444444444"
            "4a");
  lun::HostAccess access;
  EXPECT_TRUE(exports_.find("iqn.2026-11.example:t")->access_for("iqn.2026-11.example:x", &access));
}

TEST_F(Reload, UnchangedLunsRetainTheirUnits) {
  ASSERT_TRUE(load(with_luns(memory(0, kA))).ok());
  const auto before = unit(0);
  const auto target = exports_.find("iqn.2026-11.example:t");
  ASSERT_TRUE(load(with_luns(memory(0, kA) + memory(1, kB))).ok());
  EXPECT_EQ(unit(0), before);
  EXPECT_EQ(exports_.find("iqn.2026-11.example:t"), target);
  EXPECT_NE(unit(1), nullptr);
  EXPECT_EQ(opened_, 2);
}

TEST_F(Reload, AMovedVolumeRetainsItsUnit) {
  ASSERT_TRUE(load(with_luns(memory(0, kA) + memory(1, kB))).ok());
  const auto a = unit(0);
  const auto b = unit(1);
  ASSERT_TRUE(load(with_luns(memory(1, kA) + memory(0, kB))).ok());
  EXPECT_EQ(unit(1), a);
  EXPECT_EQ(unit(0), b);
  EXPECT_EQ(opened_, 2);
  EXPECT_EQ(a->gate() & lun::Unit::kRemoved, 0u);
}

TEST_F(Reload, TheUnitOfARemovedLunIsDestroyed) {
  ASSERT_TRUE(load(with_luns(memory(0, kA) + memory(1, kB))).ok());
  const std::weak_ptr<lun::Unit> gone = unit(1);
  ASSERT_TRUE(load(with_luns(memory(0, kA))).ok());
  EXPECT_EQ(unit(1), nullptr);
  EXPECT_TRUE(gone.expired()) << "its backend stays open";
}

TEST_F(Reload, ARemovedLunStillInUseIsGated) {
  ASSERT_TRUE(load(with_luns(memory(0, kA) + memory(1, kB))).ok());
  const auto held = unit(1);
  ASSERT_TRUE(load(with_luns(memory(0, kA))).ok());
  EXPECT_NE(held->gate() & lun::Unit::kRemoved, 0u);
}

TEST_F(Reload, ARemovedTargetIsUnregisteredAndLosesItsLuns) {
  ASSERT_TRUE(load(with_luns(memory(0, kA))).ok());
  const auto target = exports_.find("iqn.2026-11.example:t");
  ASSERT_TRUE(load("targets: []").ok());
  EXPECT_EQ(exports_.find("iqn.2026-11.example:t"), nullptr);
  EXPECT_TRUE(target->luns().empty());
}

TEST_F(Reload, ALunGrowsWithoutReplacingItsUnit) {
  const std::string path = testing::TempDir() + "/sluice-grow-" + std::to_string(getpid());
  const auto file = [&](const std::string& size) {
    return with_luns("  - {id: 0, backend: file, path: " + path + ", size: " + size + "}\n");
  };
  ASSERT_TRUE(load(file("1MiB")).ok());
  const auto before = unit(0);
  const Result<void> done = load(file("2MiB"));
  EXPECT_TRUE(done.ok()) << done.error();
  EXPECT_EQ(unit(0), before);
  EXPECT_EQ(before->blocks(), 4096u);
  unlink(path.c_str());
}

TEST_F(Reload, AMissingDeviceDoesNotPreventChangesOfOtherLuns) {
  open_ = [](const backend::Spec& spec) -> Result<std::unique_ptr<backend::Backend>> {
    if (spec.kind != "block") return backend::open(spec);
    return std::unique_ptr<backend::Backend>(std::make_unique<Unplugged>());
  };
  const std::string gone = "  - {id: 0, backend: block, path: /dev/sdx}\n";
  ASSERT_TRUE(load(with_luns(gone + memory(1, kB))).ok());
  const Result<void> done = load(with_luns(gone + memory(2, kA)));
  ASSERT_TRUE(done.ok()) << done.error();
  EXPECT_NE(unit(0), nullptr);
  EXPECT_EQ(unit(1), nullptr) << "it was taken away";
  EXPECT_NE(unit(2), nullptr);
}

TEST_F(Reload, TheWriteCacheIsSwitchedWithoutReplacingTheUnit) {
  ASSERT_TRUE(load(with_luns(memory(0, kA))).ok());
  const auto before = unit(0);
  const bool was = before->backend().write_cache();
  const Result<void> done =
      load(with_luns(memory(0, std::string("write-cache: ") + (was ? "off, " : "on, ") + kA)));
  ASSERT_TRUE(done.ok()) << done.error();
  EXPECT_EQ(unit(0), before);
  EXPECT_NE(before->backend().write_cache(), was);
  EXPECT_NE(before->default_write_cache(), was) << "a reset leaves it as configured";
}

TEST_F(Reload, ABackendThatFailsToOpenLeavesAllExportsUnchanged) {
  ASSERT_TRUE(load(with_luns(memory(0, kA))).ok());
  const auto before = unit(0);
  const Result<void> done = load(with_luns(
      memory(1, kB) + "  - {id: 2, backend: file, path: /does/not/exist/disk, size: 1MiB}\n"));
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error(), HasSubstr("LUN 2 of iqn.2026-11.example:t: "));
  EXPECT_THAT(done.error(), HasSubstr("/does/not/exist/disk"));
  EXPECT_EQ(unit(0), before);
  EXPECT_EQ(unit(1), nullptr);
  EXPECT_EQ(before->gate() & lun::Unit::kRemoved, 0u);
}

TEST_F(Reload, StoredReservationsAreInForceOnceTheLunIsExported) {
  store_ = std::make_shared<KeptReservations>();
  ASSERT_TRUE(load(with_luns(memory(0, kA))).ok());
  const std::lock_guard lock(unit(0)->mutex());
  EXPECT_TRUE(unit(0)->reservations().held());
  EXPECT_TRUE(unit(0)->gate() & lun::Unit::kReserved);
}

TEST_F(Reload, ADamagedReservationRecordPreventsTheExport) {
  auto store = std::make_shared<KeptReservations>();
  store->corrupt = true;
  store_ = store;
  const Result<void> done = load(with_luns(memory(0, kA)));
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error(), HasSubstr("the record is damaged"));
  EXPECT_EQ(unit(0), nullptr);
}

TEST_F(Reload, HostsChangeForTheNextLogin) {
  const std::string head = "targets:\n- iqn: iqn.2026-11.example:t\n  hosts: ";
  ASSERT_TRUE(load(head + "[{initiators: ['*'], chap: {user: a, secret: aaaaaaaaaaaa}}]\n").ok());
  const auto target = exports_.find("iqn.2026-11.example:t");
  lun::HostAccess access;
  ASSERT_TRUE(target->access_for("iqn.2026-11.example:x", &access));
  EXPECT_EQ(access.chap.secret, "aaaaaaaaaaaa");
  ASSERT_TRUE(load(head + "[{initiators: [iqn.2026-11.example:y], read-only: on}]\n").ok());
  EXPECT_FALSE(target->access_for("iqn.2026-11.example:x", &access));
  ASSERT_TRUE(target->access_for("iqn.2026-11.example:y", &access));
  EXPECT_FALSE(access.chap.configured());
  EXPECT_TRUE(access.read_only);
}

TEST_F(Reload, SessionsOfARemovedTargetAreReviewedAfterItsRemoval) {
  bool there = true;
  review_ = [&](const std::string& iqn) {
    reviewed_.push_back(iqn);
    there = exports_.find(iqn) != nullptr;
  };
  ASSERT_TRUE(load(with_luns(memory(0, kA))).ok());
  EXPECT_THAT(reviewed_, IsEmpty()) << "there is no session yet";
  ASSERT_TRUE(load("targets: []").ok());
  EXPECT_THAT(reviewed_, ElementsAre("iqn.2026-11.example:t"));
  EXPECT_FALSE(there);
}

TEST_F(Reload, SessionsAreReviewedOnlyWhenHostsChange) {
  const std::string head = "targets:\n- iqn: iqn.2026-11.example:t\n  hosts: ";
  ASSERT_TRUE(load(head + "[{initiators: ['*']}]\n").ok());
  ASSERT_TRUE(load(head + "[{initiators: ['*']}]\n").ok());
  EXPECT_THAT(reviewed_, IsEmpty());
  bool admitted = true;
  review_ = [&](const std::string& iqn) {
    reviewed_.push_back(iqn);
    lun::HostAccess access;
    admitted = exports_.find(iqn)->access_for("iqn.2026-11.example:x", &access);
  };
  ASSERT_TRUE(load(head + "[{initiators: [iqn.2026-11.example:y]}]\n").ok());
  EXPECT_THAT(reviewed_, ElementsAre("iqn.2026-11.example:t"));
  EXPECT_FALSE(admitted);
}

TEST_F(Reload, LostAccessIsReviewedBeforeALunAppearsAtAnyTarget) {
  const auto target = [](const std::string& name, const std::string& host, int luns) {
    std::string text = "- iqn: iqn.2026-11.example:" + name + "\n  hosts: [{initiators: ['" + host +
                       "']}]\n  luns:" + (luns == 0 ? " []" : "") + "\n";
    if (luns > 0) text += memory(0, kA);
    return text;
  };
  ASSERT_TRUE(load("targets:\n" + target("s", "*", 0) + target("t", "*", 1)).ok());
  size_t shown = 99;
  review_ = [&](const std::string& iqn) {
    EXPECT_EQ(iqn, "iqn.2026-11.example:t");
    shown = exports_.find("iqn.2026-11.example:s")->luns().size();
  };
  const auto before = unit(0);
  ASSERT_TRUE(
      load("targets:\n" + target("s", "*", 1) + target("t", "iqn.2026-11.example:y", 0)).ok());
  EXPECT_EQ(shown, 0u);
  EXPECT_EQ(exports_.find("iqn.2026-11.example:s")->luns().at(0).unit, before);
}

TEST_F(Reload, AFailedReloadReviewsNoSessions) {
  ASSERT_TRUE(load(with_luns(memory(0, kA))).ok());
  ASSERT_FALSE(load("targets:\n- iqn: iqn.2026-11.example:u\n  hosts: [{initiators: ['*']}]\n"
                    "  luns:\n  - {id: 2, backend: file, path: /does/not/exist, size: 1MiB}\n")
                   .ok());
  EXPECT_THAT(reviewed_, IsEmpty());
}

TEST_F(Reload, EveryPortalGroupIsATargetPortOfEveryTarget) {
  const std::string portals =
      "listen: [{address: '127.0.0.1:1', tpgt: 7}, {address: '127.0.0.1:2', tpgt: 2},"
      " {address: '127.0.0.1:3', tpgt: 7}]\n";
  const auto target = [](const std::string& name) {
    return "- {iqn: 'iqn.2026-11.example:" + name + "', hosts: [{initiators: ['*']}]}\n";
  };
  ASSERT_TRUE(load(portals + "targets:\n" + target("t")).ok());
  ASSERT_TRUE(load(portals + "targets:\n" + target("t") + target("later")).ok());
  for (const char* name : {"iqn.2026-11.example:t", "iqn.2026-11.example:later"}) {
    EXPECT_THAT(exports_.find(name)->relative_ports(), ElementsAre(2, 7));
  }
}

TEST_F(Reload, TheHostsOfAllTargetsAreKnownWithTheirCredentials) {
  const auto target = [](const std::string& name, const std::string& host) {
    return "- {iqn: 'iqn.2026-11.example:" + name + "', hosts: [" + host + "]}\n";
  };
  ASSERT_TRUE(load("targets:\n" + target("t", "{initiators: ['iqn.2026-11.example:a']}") +
                   target("u",
                          "{initiators: ['iqn.2026-11.example:b'], chap: {user: u, secret: "
                          "uuuuuuuuuuuu}}"))
                  .ok());
  EXPECT_EQ(exports_.hosts()->find("iqn.2026-11.example:b")->chap.user, "u");
  EXPECT_FALSE(exports_.hosts()->find("iqn.2026-11.example:a")->chap.configured());
  EXPECT_EQ(exports_.discovery_policy(), lun::DiscoveryPolicy::kOneCredential);
  ASSERT_TRUE(load("targets:\n" + target("t", "{initiators: ['iqn.2026-11.example:a']}")).ok());
  EXPECT_EQ(exports_.hosts()->find("iqn.2026-11.example:b"), nullptr);
}

TEST_F(Reload, DiscoveryUsesTheConfiguredChapCredentials) {
  ASSERT_TRUE(load("discovery: {chap: {user: d, secret: dddddddddddd}}\n").ok());
  EXPECT_EQ(exports_.discovery_access().chap.user, "d");
  ASSERT_TRUE(load("").ok());
  EXPECT_FALSE(exports_.discovery_access().chap.configured());
}

}  // namespace
}  // namespace sluice::config
