// Whether a pool of Ceph is the StoragePool's, and its images are the volumes': other pools and
// images of the same name are refused (rbd_marker.h, image_object.h). By a real Ceph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rbd/librbd.h>

#include <algorithm>

#include "base/record_text.h"
#include "control/local/two_copies.h"
#include "control_rbd/image_object.h"
#include "control_rbd/pool_fixture.h"
#include "control_rbd/rbd_marker.h"

namespace sluice::control {
namespace {

using testing::HasSubstr;

constexpr const char* kImage = "volume-5f0c7a3e-1111-4222-8333-444455556666";

class RbdIdentityTest : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (HasFatalFailure()) return;
    pool_ = desired();
    pool_.mutable_identity();
    one_ = std::make_unique<Gateway>(*this, "one", pool_);
    one_->until([&] { return one_->observe().problem().empty(); });
  }
  // As the control plane takes it up.
  wire::PoolObserved reported() {
    wire::PoolObserved seen = one_->observe();
    EXPECT_EQ(seen.problem(), "");
    EXPECT_NE(seen.marker(), "");
    pool_.mutable_identity()->set_marker(seen.marker());
    pool_.mutable_identity()->set_adoptions(seen.adoptions());
    one_->expect(pool_);
    return seen;
  }
  void adopt() {
    pool_.mutable_identity()->set_confirmed_adoptions(pool_.identity().adoptions() + 1);
    one_->expect(pool_);
  }
  static wire::DesiredVolume of_size(uint64_t bytes) {
    wire::DesiredVolume order = volume(++last_order, kImage);
    order.set_size_bytes(static_cast<int64_t>(bytes));
    return order;
  }
  // Why the volume can't be opened; empty: it can.
  std::string open(uint64_t bytes = rbd::kImageSize) {
    const wire::DesiredVolume order = of_size(bytes);
    auto storage = one_->storage_of(order);
    std::string problem = one_->opened(*storage, order).problem;
    storage->begin_close();
    one_->until([&] { return storage->is_closed(); });
    return problem;
  }
  wire::Job create() {
    wire::Job job;
    job.mutable_create()->set_location(kImage);
    job.mutable_create()->set_size_bytes(rbd::kImageSize);
    return job;
  }
  wire::Job resize(uint64_t bytes) {
    wire::Job job;
    job.mutable_resize()->set_location(kImage);
    job.mutable_resize()->set_size_bytes(static_cast<int64_t>(bytes));
    return job;
  }
  wire::Job remove() {
    wire::Job job;
    job.mutable_delete_()->set_location(kImage);
    return job;
  }
  int objects(const std::string& name) {
    return rbd::admin("sh -c 'rados -p rbd -N " + ceph_.space() + " ls | grep -qx " + name + "'");
  }
  int image(const std::string& words) { return rbd::admin("rbd " + words); }
  std::string text_of(const std::string& name) {
    std::string text(kCopyBytes, '\0');
    const int r = rados_read(ceph_.pool()->context(), name.c_str(), text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max(r, 0)));
    return text;
  }
  void damage(const std::string& name) {
    ASSERT_EQ(rados_write_full(ceph_.pool()->context(), name.c_str(), "noise", 5), 0);
  }
  void replace_image() {
    ASSERT_EQ(image("rm " + ceph_.path(kImage)), 0);
    ASSERT_EQ(
        image("create --size 8M --image-feature layering,exclusive-lock " + ceph_.path(kImage)), 0);
  }
  // Removes all objects, as in a new namespace.
  void empty_pool() {
    ASSERT_EQ(image("rm " + ceph_.path(kImage)), 0);
    const std::string rados = "rados -p rbd -N " + ceph_.space();
    ASSERT_EQ(rbd::admin("sh -c '" + rados + " ls | grep ^sluice | xargs -n 1 " + rados + " rm'"),
              0);
  }

  static uint64_t last_order;
  wire::DesiredPool pool_;
  std::unique_ptr<Gateway> one_;
};

uint64_t RbdIdentityTest::last_order = 0;

TEST_F(RbdIdentityTest, ThePoolIsMarkedAtFirstUseAndRecognizedByEveryGateway) {
  const wire::PoolObserved first = reported();
  EXPECT_EQ(first.marker().size(), 64u);
  Gateway two(*this, "two", pool_);
  two.until([&] { return two.observe().problem().empty(); });
  const wire::PoolObserved second = two.observe();
  EXPECT_EQ(second.problem(), "");
  EXPECT_EQ(second.marker(), first.marker());
  EXPECT_EQ(objects("sluice.pool.pool"), 0);
}

TEST_F(RbdIdentityTest, APoolThatWasCreatedAgainIsRefusedAndNotWrittenToUntilItIsAdopted) {
  const wire::PoolObserved before = reported();
  ASSERT_EQ(one_->run(create()).problem, "");
  ASSERT_EQ(open(), "");
  empty_pool();
  const wire::PoolObserved seen = one_->observe();
  EXPECT_TRUE(seen.unidentified());
  EXPECT_THAT(seen.problem(), HasSubstr("has no marker of the pool"));
  EXPECT_THAT(seen.problem(), HasSubstr("sluicectl pool adopt"));
  EXPECT_EQ(seen.capacity_bytes(), 0);
  EXPECT_THAT(open(), HasSubstr("has no marker of the pool"));
  EXPECT_THAT(one_->run(create()).problem, HasSubstr("nothing is changed in storage"));
  EXPECT_THAT(one_->run(remove()).problem, HasSubstr("nothing is changed in storage"));
  EXPECT_NE(objects("sluice.pool.pool"), 0);
  EXPECT_NE(image("info " + ceph_.path(kImage)), 0) << "an image was created";
  adopt();
  const wire::PoolObserved adopted = one_->observe();
  EXPECT_EQ(adopted.problem(), "");
  EXPECT_EQ(adopted.adoptions(), 1u);
  EXPECT_NE(adopted.marker(), before.marker());
  EXPECT_EQ(one_->run(create()).problem, "");
  EXPECT_EQ(open(), "");
}

// Of a pool that was copied, or of another cluster: the marker was copied with everything else.
TEST_F(RbdIdentityTest, ACopyOfThePoolIsRefused) {
  ASSERT_EQ(one_->run(create()).problem, "");
  PoolMarker marker{.pool = "pool", .id = reported().marker(), .filesystem = "another/7"};
  const std::string text = seal(format_marker(marker));
  ASSERT_EQ(rados_write_full(ceph_.pool()->context(), "sluice.pool.pool", text.data(), text.size()),
            0);
  EXPECT_THAT(one_->observe().problem(),
              HasSubstr("its marker was written in Ceph pool another/7: it is a copy"));
  EXPECT_THAT(open(), HasSubstr("it is a copy"));
  adopt();
  EXPECT_EQ(one_->observe().problem(), "");
  EXPECT_EQ(open(), "");
}

TEST_F(RbdIdentityTest, APoolOfAnEarlierReleaseIsMarkedOnlyWhereAllKnownImagesExist) {
  ASSERT_EQ(rbd::admin("rados -p rbd -N " + ceph_.space() + " rm sluice.pool.pool"), 0);
  pool_.mutable_identity()->add_images(kImage);
  one_->expect(pool_);
  EXPECT_THAT(one_->observe().problem(), HasSubstr("lacks " + std::string(kImage)));
  EXPECT_NE(objects("sluice.pool.pool"), 0);
  ASSERT_EQ(image("create --size 8M --image-feature layering,exclusive-lock " + ceph_.path(kImage)),
            0);
  EXPECT_EQ(one_->observe().problem(), "");
  EXPECT_EQ(objects("sluice.pool.pool"), 0);
  EXPECT_EQ(open(), "") << "it has no record yet";
  EXPECT_EQ(objects("sluice.image." + std::string(kImage)), 0);
}

TEST_F(RbdIdentityTest, AnImageThatWasReplacedIsRefusedUntilItIsConfirmed) {
  ASSERT_EQ(one_->run(create()).problem, "");
  ASSERT_EQ(open(), "");
  replace_image();
  const std::string problem = open();
  EXPECT_THAT(problem, HasSubstr("is another image than the volume's"));
  EXPECT_THAT(problem, HasSubstr("sluice.image." + std::string(kImage)));
  wire::Job snapshot;
  snapshot.mutable_snapshot()->set_location(kImage);
  snapshot.mutable_snapshot()->set_snapshot_location("s");
  EXPECT_THAT(one_->run(snapshot).problem, HasSubstr("is another image than the volume's"));
  EXPECT_THAT(one_->run(resize(2 * rbd::kImageSize)).problem, HasSubstr("is another image than"));
  reported();
  adopt();
  EXPECT_EQ(open(), "");
  replace_image();
  EXPECT_NE(open(), "") << "one confirmation counts for one replacement";
  ASSERT_EQ(rbd::admin("rados -p rbd -N " + ceph_.space() + " rm sluice.image." + kImage), 0);
  EXPECT_EQ(open(), "");
}

TEST_F(RbdIdentityTest, AMarkerAndAnImagesRecordSurviveDamageToTheirTextAndAreWrittenAgain) {
  ASSERT_EQ(one_->run(create()).problem, "");
  ASSERT_EQ(open(), "");
  const std::string marker = reported().marker();
  const std::string record = "sluice.image." + std::string(kImage);
  for (const std::string& name : {std::string("sluice.pool.pool"), record}) {
    const std::string before = text_of(name);
    damage(name);
    EXPECT_EQ(one_->observe().problem(), "");
    EXPECT_EQ(one_->observe().marker(), marker);
    EXPECT_EQ(open(), "");
    EXPECT_EQ(text_of(name), before);
  }
  damage(record);
  replace_image();
  EXPECT_THAT(open(), HasSubstr("is another image than the volume's"));
}

TEST_F(RbdIdentityTest, AMarkerAndAnImageRecordOfAReleaseWithoutCopiesReceiveACopy) {
  ASSERT_EQ(one_->run(create()).problem, "");
  ASSERT_EQ(open(), "");
  reported();
  const std::string record = "sluice.image." + std::string(kImage);
  for (const std::string& name : {std::string("sluice.pool.pool"), record}) {
    ASSERT_EQ(rbd::admin("rados -p rbd -N " + ceph_.space() + " rmomapkey " + name + " copy"), 0);
    EXPECT_EQ(one_->observe().problem(), "");
    EXPECT_EQ(open(), "");
    damage(name);
    EXPECT_EQ(one_->observe().problem(), "");
    EXPECT_EQ(open(), "");
  }
}

TEST_F(RbdIdentityTest, AnotherImageUnderAVolumesNameIsNotDeleted) {
  ASSERT_EQ(one_->run(create()).problem, "");
  replace_image();
  wire::Job job = remove();
  for (const int64_t trash_seconds : {0, 60}) {
    job.mutable_delete_()->set_trash_seconds(trash_seconds);
    EXPECT_THAT(one_->run(job).problem, HasSubstr("is another image than the volume's"));
  }
  EXPECT_EQ(image("info " + ceph_.path(kImage)), 0) << "it was deleted";
}

TEST_F(RbdIdentityTest, ATruncatedImageIsRefusedAndNotExtended) {
  ASSERT_EQ(one_->run(create()).problem, "");
  ASSERT_EQ(one_->run(resize(2 * rbd::kImageSize)).problem, "");
  ASSERT_EQ(open(2 * rbd::kImageSize), "");
  ASSERT_EQ(image("resize --allow-shrink --size 8M " + ceph_.path(kImage)), 0);
  EXPECT_THAT(open(2 * rbd::kImageSize),
              HasSubstr("is 8MiB, recorded are 16MiB: its end is missing"));
  EXPECT_THAT(open(), HasSubstr("its end is missing")) << "the record beside it says more";
  EXPECT_THAT(one_->run(resize(4 * rbd::kImageSize)).problem, HasSubstr("its end is missing"));
  EXPECT_EQ(ceph_.images().adopt(kImage).value(), rbd::kImageSize) << "it was extended";
}

TEST_F(RbdIdentityTest, ARollbackToASmallerSnapshotRetainsTheSizeOfTheVolume) {
  ASSERT_EQ(one_->run(create()).problem, "");
  wire::Job snapshot;
  snapshot.mutable_snapshot()->set_location(kImage);
  snapshot.mutable_snapshot()->set_snapshot_location("s");
  ASSERT_EQ(one_->run(snapshot).problem, "");
  ASSERT_EQ(one_->run(resize(2 * rbd::kImageSize)).problem, "");
  wire::Job back;
  back.mutable_roll_back()->set_location(kImage);
  back.mutable_roll_back()->set_snapshot_location("s");
  EXPECT_EQ(one_->run(back).problem, "");
  EXPECT_EQ(one_->run(back).problem, "");
  EXPECT_EQ(open(2 * rbd::kImageSize), "");
}

TEST_F(RbdIdentityTest, ADeletedImageLeavesNoRecord) {
  ASSERT_EQ(one_->run(create()).problem, "");
  EXPECT_EQ(objects("sluice.image." + std::string(kImage)), 0);
  EXPECT_EQ(one_->run(remove()).problem, "");
  EXPECT_NE(objects("sluice.image." + std::string(kImage)), 0);
}

TEST_F(RbdIdentityTest, ADamagedRecordWithoutACopyIsRefusedWithRepairInstructions) {
  ASSERT_EQ(one_->run(create()).problem, "");
  const std::string name = "sluice.image." + std::string(kImage);
  ASSERT_EQ(rados_remove(ceph_.pool()->context(), name.c_str()), 0);
  ASSERT_EQ(rados_write_full(ceph_.pool()->context(), name.c_str(), "damaged", 7), 0);
  EXPECT_THAT(open(), HasSubstr(name + " is damaged; once you know"));
}

TEST_F(RbdIdentityTest, ClientsAreNotBlocklistedInAnotherCluster) {
  reported();
  EXPECT_EQ(one_->run(fence_job({"192.0.2.1:0/77"})).problem, "");
  pool_.mutable_identity()->set_marker(std::string(64, '0'));
  one_->expect(pool_);
  EXPECT_THAT(one_->run(fence_job({"192.0.2.1:0/78"})).problem, HasSubstr("the monitors are of"));
  adopt();
  EXPECT_EQ(one_->run(fence_job({"192.0.2.1:0/78"})).problem, "");
}

}  // namespace
}  // namespace sluice::control
