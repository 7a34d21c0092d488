// Volumes' storages in a real Ceph (ceph_fixture.h): clients that are recorded first, takeovers,
// records, fences.
#include "control_rbd/rbd_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control_rbd/pool_fixture.h"
#include "control_rbd/record_object.h"

namespace sluice::control {
namespace {

using backend::Bytes;
using backend::Driver;
using backend::pattern;
using testing::HasSubstr;

class RbdPoolTest : public PoolTest {};

TEST_F(RbdPoolTest, NoImageIsOpenedBeforeTheClientIsRecorded) {
  Gateway one(*this, "one");
  one.answers = wire::COMMIT_RESULT_UNSPECIFIED;
  auto storage = one.storage_of(volume(1));
  EXPECT_TRUE(storage->open(volume(1)).pending);
  EXPECT_THAT(one.look(), HasSubstr("is not recorded by the control plane yet"));
  EXPECT_TRUE(storage->open(volume(1)).pending);
  EXPECT_EQ(owner(), "") << "opened by a client that no gateway could shut out";
  one.answers = wire::COMMIT_RESULT_COMMITTED;
  one.reconnect();
  const auto backend = one.open(*storage, volume(1));
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(owner(), one.asked().back());
  EXPECT_EQ(one.look(), "");
}

// Otherwise the control plane would treat it as unfit until the next probe, ten seconds later.
TEST_F(RbdPoolTest, AClientThatIsRecordedDuringAProbeIsReportedAsRecorded) {
  for (int i = 0; i < 10; ++i) {
    Gateway one(*this, "one" + std::to_string(i));
    one.answers = wire::COMMIT_RESULT_UNSPECIFIED;
    one.until([&] { return one.look().find("is not recorded") != std::string::npos; });
    one.look_meanwhile([&] {
      one.answers = wire::COMMIT_RESULT_COMMITTED;
      one.reconnect();
    });
  }
}

TEST_F(RbdPoolTest, AFormerOwnersLockIsAcquiredAfterItsClientIsFenced) {
  Gateway one(*this, "one"), two(*this, "two");
  auto first = one.storage_of(volume(1));
  auto old = one.open(*first, volume(1));
  ASSERT_NE(old, nullptr);
  ASSERT_EQ(Driver(*old).write(0, pattern(0, 4096, 1)), 0);
  ASSERT_EQ(one.claim(*first, record(1, "one")), "");

  auto second = two.storage_of(volume(2));
  EXPECT_THAT(two.problem(*second, volume(2)), HasSubstr("is in use by")) << "robbed the living";
  ASSERT_EQ(Driver(*old).write(0, pattern(0, 4096, 1)), 0);

  EXPECT_EQ(two.run(fence_job(one.asked())).problem, "");
  EXPECT_EQ(two.run(fence_job(one.asked())).problem, "") << "twice is harmless";
  wire::DesiredVolume order = volume(3);
  for (const std::string& client : one.asked()) order.add_fenced_clients(client);
  second = two.storage_of(order);
  const auto taken = two.open(*second, order);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(Driver(*taken).read(0, 4096), pattern(0, 4096, 1));
  ASSERT_EQ(two.claim(*second, record(3, "two")), "");

  EXPECT_EQ(Driver(*old).write(0, pattern(0, 4096, 9)), -ESHUTDOWN);
  EXPECT_THAT(one.update(*first, record(1, "one")), HasSubstr("this client is blocklisted"));
  one.until([&] { return !first->lost().empty(); });
  EXPECT_THAT(first->lost(), HasSubstr("blocklisted"));
  EXPECT_EQ(Driver(*taken).read(0, 4096), pattern(0, 4096, 1));
  EXPECT_EQ(second->lost(), "");
}

TEST_F(RbdPoolTest, AFencedGatewayReconnectsAsANewClientThatIsRecordedAgain) {
  Gateway one(*this, "one"), two(*this, "two");
  auto first = one.storage_of(volume(1));
  auto old = one.open(*first, volume(1));
  ASSERT_NE(old, nullptr);
  const std::string before = one.asked().back();
  ASSERT_EQ(two.run(fence_job({before})).problem, "");
  // An OSD refuses the client once it has the map with the fence. The next owner's requests carry
  // the number of that map, so the OSD has it before it serves them. No request has been sent here
  // yet.
  one.until([&] { return Driver(*old).write(0, Bytes(4096)) == -ESHUTDOWN; });
  one.until([&] { return one.asked().back() != before; });
  EXPECT_FALSE(first->is_closed());
  EXPECT_EQ(Driver(*old).write(0, Bytes(4096)), -ESHUTDOWN) << "came back by itself";
  EXPECT_FALSE(old->check().ok());
  old.reset();
  first->begin_close();
  one.until([&] { return first->is_closed(); });
  wire::DesiredVolume order = volume(2);
  order.add_fenced_clients(before);
  first = one.storage_of(order);
  old = one.open(*first, order);
  ASSERT_NE(old, nullptr);
  EXPECT_EQ(owner(), one.asked().back());
  EXPECT_EQ(Driver(*old).write(0, Bytes(4096)), 0);
}

TEST_F(RbdPoolTest, AnIdleGatewayDetectsThatItIsFencedAndReconnectsAsANewClient) {
  Gateway idle(*this, "idle"), other(*this, "other");
  idle.until([&] { return !idle.asked().empty(); });
  other.until([&] { return !other.asked().empty(); });
  const std::string before = idle.asked().back();
  ASSERT_EQ(other.run(fence_job({before})).problem, "");
  idle.until([&] { return idle.asked().back() != before; });
}

TEST_F(RbdPoolTest, AFencedAnswerOfTheControlPlaneFencesTheServedImage) {
  Gateway one(*this, "one");
  auto storage = one.storage_of(volume(1));
  const auto backend = one.open(*storage, volume(1));
  ASSERT_NE(backend, nullptr);
  one.answers = wire::COMMIT_RESULT_FENCED;
  one.reconnect();
  one.until([&] { return !storage->lost().empty(); });
  EXPECT_EQ(Driver(*backend).write(0, Bytes(4096)), -ESHUTDOWN);
}

TEST_F(RbdPoolTest, ALostStreamAffectsNeitherIoNorClaimsNorOpenings) {
  Gateway one(*this, "one");
  auto storage = one.storage_of(volume(1));
  const auto backend = one.open(*storage, volume(1));
  ASSERT_NE(backend, nullptr);
  one.lose_stream();
  EXPECT_EQ(Driver(*backend).write(0, Bytes(4096)), 0);
  EXPECT_EQ(one.claim(*storage, record(1, "one")), "");
  auto other = one.storage_of(volume(1, "other"));
  EXPECT_NE(one.open(*other, volume(1, "other")), nullptr) << "once recorded is recorded";
}

TEST_F(RbdPoolTest, TheRecordRefusesOlderEpochsAndUpdatesByOtherGateways) {
  Gateway one(*this, "one");
  auto storage = one.storage_of(volume(5));
  const auto backend = one.open(*storage, volume(5));
  ASSERT_NE(backend, nullptr);
  EXPECT_FALSE(storage->record().value());
  EXPECT_FALSE(storage->record_suffices());
  Record five = record(5, "one");
  ASSERT_EQ(one.claim(*storage, five), "");
  five.generation = 7;
  five.reservations.generation = 42;
  EXPECT_EQ(one.update(*storage, five), "");
  EXPECT_THAT(one.claim(*storage, record(4, "one")), HasSubstr("is of epoch 5, newer than"));
  EXPECT_THAT(one.update(*storage, record(5, "two")), HasSubstr("is another gateway's by now"));
  EXPECT_THAT(one.update(*storage, record(6, "one")), HasSubstr("is another gateway's by now"));
  RecordObject object(ceph_.pool(), kVolumeUid);
  EXPECT_EQ(object.read().value(), five);
  EXPECT_TRUE(object.claim(record(6, "two")).ok());
  EXPECT_THAT(one.update(*storage, five), HasSubstr("is another gateway's by now"));
}

TEST_F(RbdPoolTest, AClaimReadsTheRecordAgainIfAnotherGatewayWroteItMeanwhile) {
  RecordObject mine(ceph_.pool(), kVolumeUid),
      theirs(ceph_.client().pool("rbd", ceph_.space()).value(), kVolumeUid);
  EXPECT_FALSE(mine.read().value());
  ASSERT_TRUE(theirs.claim(record(6, "two")).ok());
  EXPECT_THAT(mine.claim(record(5, "one")).error(), HasSubstr("is of epoch 6, newer than"));
  ASSERT_TRUE(mine.claim(record(7, "one")).ok());
  EXPECT_EQ(theirs.read().value(), record(7, "one"));
}

TEST_F(RbdPoolTest, ARecordWhoseTextIsDamagedIsReadFromItsCopyAndIsWrittenAgainByAClaim) {
  RecordObject object(ceph_.pool(), kVolumeUid);
  const std::string name = std::string("sluice.volume.") + kVolumeUid;
  for (const std::string& damage :
       {std::string(), std::string("sluice-volume 1\nvolume of noise")}) {
    ASSERT_TRUE(object.claim(record(6, "two")).ok());
    ASSERT_EQ(rados_write_full(ceph_.pool()->context(), name.c_str(), damage.data(), damage.size()),
              0);
    Record copy = record(6, "two");
    copy.reservations_known = false;
    EXPECT_EQ(object.read().value(), copy);
    EXPECT_THAT(object.claim(record(5, "one")).error(), HasSubstr("is of epoch 6, newer than"));
    ASSERT_TRUE(object.claim(record(6, "two")).ok());
    EXPECT_EQ(object.read().value(), record(6, "two"));
  }
}

TEST_F(RbdPoolTest, ARecordWithoutACopyIsRefusedIfItsTextIsDamaged) {
  const std::string name = std::string("sluice.volume.") + kVolumeUid;
  ASSERT_EQ(rados_write_full(ceph_.pool()->context(), name.c_str(), "noise", 5), 0);
  RecordObject object(ceph_.pool(), kVolumeUid);
  EXPECT_FALSE(object.read().ok());
  EXPECT_FALSE(object.claim(record(7, "one")).ok());
}

TEST_F(RbdPoolTest, ALargeRecordIsReadWhole) {
  Record large = record(1, "one");
  for (uint64_t key = 1; key <= 4000; ++key) {
    lun::Registration& registration = large.reservations.registrations.emplace_back();
    registration.key = key;
    registration.nexus.initiator_name = "iqn.2026-11.dev.sluice:host-" + std::to_string(key);
  }
  RecordObject object(ceph_.pool(), kVolumeUid);
  ASSERT_TRUE(object.claim(large).ok());
  EXPECT_EQ(object.read().value(), large);
  const std::string name = std::string("sluice.volume.") + kVolumeUid;
  ASSERT_EQ(rados_write_full(ceph_.pool()->context(), name.c_str(), "noise", 5), 0);
  large.reservations_known = false;
  EXPECT_EQ(object.read().value(), large) << "its copy";
}

TEST_F(RbdPoolTest, AnImageGrowsAsynchronously) {
  Gateway one(*this, "one");
  auto storage = one.storage_of(volume(1));
  const auto backend = one.open(*storage, volume(1));
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(storage->grow(rbd::kImageSize).value(), VolumeStorage::Growth::kDone);
  EXPECT_EQ(storage->grow(2 * rbd::kImageSize).value(), VolumeStorage::Growth::kPending);
  one.until(
      [&] { return storage->grow(2 * rbd::kImageSize).value() == VolumeStorage::Growth::kDone; });
  EXPECT_EQ(backend->size_bytes(), 2 * rbd::kImageSize);
  auto found = ceph_.images().open("disk");
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)->size().value(), 2 * rbd::kImageSize);
}

TEST_F(RbdPoolTest, AGrowthByAnotherClientIsDetectedAndNotReverted) {
  Gateway one(*this, "one");
  auto storage = one.storage_of(volume(1));
  const auto backend = one.open(*storage, volume(1));
  ASSERT_NE(backend, nullptr);
  auto other = ceph_.images().open("disk");
  ASSERT_TRUE(other);
  ASSERT_TRUE((*other)->grow(3 * rbd::kImageSize).ok());
  one.until(
      [&] { return storage->grow(2 * rbd::kImageSize).value() == VolumeStorage::Growth::kDone; });
  EXPECT_EQ(backend->size_bytes(), 3 * rbd::kImageSize) << "made smaller, or not seen";
}

TEST_F(RbdPoolTest, AFailedGrowthReportsTheReasonAndIsRetried) {
  Gateway one(*this, "one"), two(*this, "two");
  auto storage = one.storage_of(volume(1));
  const auto backend = one.open(*storage, volume(1));
  ASSERT_NE(backend, nullptr);
  ASSERT_EQ(two.run(fence_job(one.asked())).problem, "");
  std::string problem;
  one.until([&] {
    const auto grown = storage->grow(2 * rbd::kImageSize);
    problem = grown ? "" : grown.error();
    return !grown;
  });
  EXPECT_NE(problem, "");
  EXPECT_EQ(storage->grow(2 * rbd::kImageSize).value(), VolumeStorage::Growth::kPending);
}

TEST_F(RbdPoolTest, ACancelledOpeningLeavesNoLock) {
  Gateway one(*this, "one");
  auto storage = one.storage_of(volume(1));
  EXPECT_TRUE(storage->open(volume(1)).pending);
  storage->begin_close();
  one.until([&] { return storage->is_closed(); });
  EXPECT_EQ(owner(), "");
}

TEST_F(RbdPoolTest, AClosedStorageHasReleasedItsLock) {
  Gateway one(*this, "one"), two(*this, "two");
  auto first = one.storage_of(volume(1));
  auto backend = one.open(*first, volume(1));
  ASSERT_NE(backend, nullptr);
  EXPECT_FALSE(first->is_closed());
  backend.reset();
  first->begin_close();
  one.until([&] { return first->is_closed(); });
  EXPECT_EQ(owner(), "");
  auto second = two.storage_of(volume(2));
  EXPECT_NE(two.open(*second, volume(2)), nullptr);
}

TEST_F(RbdPoolTest, AnUnusablePoolReportsTheReason) {
  wire::DesiredPool wrong = desired();
  wrong.mutable_rbd()->set_pool("nopool");
  Gateway one(*this, "one", wrong);
  one.until([&] { return one.look().find("there is no pool nopool") != std::string::npos; });
  wrong = desired();
  wrong.mutable_rbd()->set_key("AQBZqyBpAAAAABAAq0sQm2PnbWLpQMXXHYXl2A==");
  Gateway two(*this, "two", wrong);
  two.until([&] { return two.look().find("refused client.gateway") != std::string::npos; });
}

}  // namespace
}  // namespace sluice::control
