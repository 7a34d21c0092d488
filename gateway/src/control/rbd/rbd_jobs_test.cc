// Jobs on images of a real Ceph (ceph_fixture.h), each twice.
#include "control_rbd/rbd_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "control_rbd/pool_fixture.h"
#include "control_rbd/record_object.h"

namespace sluice::control {
namespace {

using backend::Bytes;
using backend::Driver;
using backend::pattern;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kImage = "volume-5f0c7a3e-1111-4222-8333-444455556666";

class RbdJobsTest : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (HasFatalFailure()) return;
    one_ = std::make_unique<Gateway>(*this, "one");
    one_->until([&] { return one_->look().empty(); });
  }
  // The problem, which is the same both times.
  std::string twice(const wire::Job& job) {
    const JobOutcome first = one_->run(job);
    const JobOutcome second = one_->run(job);
    EXPECT_EQ(first.problem, second.problem);
    EXPECT_FALSE(first.unsupported);
    return first.problem;
  }
  static wire::Job create(const std::string& image, int64_t size) {
    wire::Job job;
    job.mutable_create()->set_location(image);
    job.mutable_create()->set_size_bytes(size);
    return job;
  }
  static wire::Job snapshot(const std::string& image, const std::string& name) {
    wire::Job job;
    job.mutable_snapshot()->set_location(image);
    job.mutable_snapshot()->set_snapshot_location(name);
    return job;
  }
  static wire::Job remove(const std::string& image, int64_t trash_seconds) {
    wire::Job job;
    job.mutable_delete_()->set_location(image);
    job.mutable_delete_()->set_trash_seconds(trash_seconds);
    return job;
  }
  static wire::Job clone(const std::string& from, const std::string& of, const std::string& to) {
    wire::Job job;
    job.mutable_clone()->set_source_location(from);
    job.mutable_clone()->set_snapshot_of(of);
    job.mutable_clone()->set_location(to);
    job.mutable_clone()->set_size_bytes(2 * rbd::kImageSize);
    return job;
  }
  static wire::Job flatten(const std::string& image) {
    wire::Job job;
    job.mutable_flatten()->set_location(image);
    return job;
  }
  static wire::Job roll_back(const std::string& image, const std::string& name) {
    wire::Job job;
    job.mutable_roll_back()->set_location(image);
    job.mutable_roll_back()->set_snapshot_location(name);
    return job;
  }
  static wire::Job adopt(const std::string& image, const std::string& location) {
    wire::Job job;
    job.mutable_adopt()->set_image(image);
    job.mutable_adopt()->set_location(location);
    return job;
  }
  // Served by `one_` while `work` runs.
  void served(const std::string& image, const std::function<void(Driver&)>& work) {
    auto storage = one_->storage_of(volume(1, image));
    auto backend = one_->open(*storage, volume(1, image));
    ASSERT_NE(backend, nullptr);
    {
      Driver driver(*backend);
      work(driver);
    }
    backend.reset();
    storage->begin_close();
    one_->until([&] { return storage->is_closed(); });
  }
  void fill(const std::string& image, uint8_t salt) {
    served(image, [&](Driver& driver) { ASSERT_EQ(driver.write(0, pattern(0, 65536, salt)), 0); });
  }
  void expect(const std::string& image, uint8_t salt) {
    served(image, [&](Driver& driver) {
      EXPECT_EQ(driver.read(0, 65536), pattern(0, 65536, salt)) << image;
    });
  }
  uint64_t size_of(const std::string& image) { return ceph_.images().adopt(image).value(); }

  std::unique_ptr<Gateway> one_;
};

TEST_F(RbdJobsTest, ImagesAreCreatedGrownAndDeletedWithTheirRecords) {
  EXPECT_EQ(twice(create(kImage, rbd::kImageSize)), "");
  wire::Job list;
  list.mutable_list_images();
  EXPECT_THAT(one_->run(list).images, ElementsAre(kImage));
  wire::Job resize;
  resize.mutable_resize()->set_location(kImage);
  resize.mutable_resize()->set_size_bytes(2 * rbd::kImageSize);
  EXPECT_EQ(twice(resize), "");
  EXPECT_EQ(size_of(kImage), 2 * rbd::kImageSize);
  resize.mutable_resize()->set_size_bytes(rbd::kImageSize);
  EXPECT_EQ(twice(resize), "");
  EXPECT_EQ(size_of(kImage), 2 * rbd::kImageSize) << "never below the present size";
  RecordObject object(ceph_.pool(), kVolumeUid);
  ASSERT_TRUE(object.claim(record(1, "one")).ok());
  served(kImage, [&](Driver&) {
    EXPECT_THAT(one_->run(remove(kImage, 0)).problem, HasSubstr("is served by this gateway"));
  });
  EXPECT_EQ(twice(remove(kImage, 0)), "");
  EXPECT_THAT(one_->run(list).images, ElementsAre());
  EXPECT_FALSE(object.read().value());
  EXPECT_EQ(twice(remove("other", 3600)), "");
  EXPECT_EQ(rbd::admin("sh -c 'rbd trash ls rbd/" + ceph_.space() + " | grep -q other'"), 0);
}

TEST_F(RbdJobsTest, AServedVolumeIsGrownAndSnapshottedThroughItsOpenImage) {
  served("disk", [&](Driver& driver) {
    ASSERT_EQ(driver.write(0, pattern(0, 65536, 1)), 0);
    EXPECT_EQ(twice(snapshot("disk", "before")), "");
    ASSERT_EQ(driver.write(0, pattern(0, 65536, 2)), 0);
    wire::Job resize;
    resize.mutable_resize()->set_location("disk");
    resize.mutable_resize()->set_size_bytes(2 * rbd::kImageSize);
    EXPECT_EQ(twice(resize), "");
    EXPECT_THAT(one_->run(roll_back("disk", "before")).problem, HasSubstr("is served by"));
  });
  expect("disk", 2);
  EXPECT_EQ(twice(roll_back("disk", "before")), "");
  expect("disk", 1);
  wire::Job forget;
  forget.mutable_delete_snapshot()->set_location("disk");
  forget.mutable_delete_snapshot()->set_snapshot_location("before");
  EXPECT_EQ(twice(forget), "");
  EXPECT_THAT(twice(roll_back("disk", "before")), HasSubstr("no snapshot before"));
}

TEST_F(RbdJobsTest, JobsOnAnImageThatAnotherClientServesAreRefused) {
  Gateway two(*this, "two");
  auto storage = two.storage_of(volume(1));
  auto backend = two.open(*storage, volume(1));
  ASSERT_NE(backend, nullptr);
  for (const wire::Job& job : {snapshot("disk", "s"), roll_back("disk", "s"), flatten("disk")}) {
    EXPECT_THAT(one_->run(job).problem, HasSubstr("is open by another client"))
        << job.DebugString();
  }
  EXPECT_THAT(one_->run(remove("disk", 0)).problem, HasSubstr("it is open somewhere"));
  EXPECT_EQ(Driver(*backend).write(0, Bytes(4096)), 0);
  EXPECT_EQ(storage->lost(), "");
}

TEST_F(RbdJobsTest, ClonesASnapshotAndTheCurrentStateOfAnImage) {
  fill("disk", 1);
  ASSERT_EQ(twice(snapshot("disk", "s")), "");
  served("disk", [&](Driver& driver) {
    ASSERT_EQ(driver.write(0, pattern(0, 65536, 2)), 0);
    EXPECT_EQ(twice(clone("s", "disk", "of-snapshot")), "");
    EXPECT_EQ(twice(clone("disk", "", "of-image")), "");
    ASSERT_EQ(driver.write(0, pattern(0, 65536, 3)), 0);
  });
  expect("of-snapshot", 1);
  expect("of-image", 2);
  EXPECT_EQ(size_of("of-image"), 2 * rbd::kImageSize);
  EXPECT_NE(rbd::admin("sh -c 'rbd snap ls " + ceph_.path() + " | grep -q for-of-image'"), 0)
      << "its snapshot is left";
}

TEST_F(RbdJobsTest, AServedImageIsFlattened) {
  fill("disk", 1);
  ASSERT_EQ(twice(clone("disk", "", "copy")), "");
  served("copy", [&](Driver& driver) {
    EXPECT_EQ(one_->run(flatten("copy")).problem, "");
    EXPECT_EQ(driver.write(4096, pattern(4096, 4096, 9)), 0);
    EXPECT_EQ(driver.read(0, 4096), pattern(0, 4096, 1));
  });
  EXPECT_EQ(twice(flatten("copy")), "");
  EXPECT_NE(rbd::admin("sh -c 'rbd info " + ceph_.path("copy") + " | grep -q parent:'"), 0);
}

TEST_F(RbdJobsTest, AFlattenReportsItsProgressAndStopsWhenItsVolumeCloses) {
  constexpr int64_t kLarge = int64_t{64} << 30;  // 16384 objects of 4 MiB
  ASSERT_EQ(one_->run(create("large", kLarge)).problem, "");
  wire::Job copy = clone("large", "", "copy");
  copy.mutable_clone()->set_size_bytes(kLarge);
  ASSERT_EQ(one_->run(copy).problem, "");
  wire::DesiredVolume order = volume(1, "copy");
  order.set_size_bytes(kLarge);
  auto storage = one_->storage_of(order);
  auto backend = one_->open(*storage, order);
  ASSERT_NE(backend, nullptr);
  JobOutcome outcome;
  std::thread job([&] { outcome = one_->run(flatten("copy")); });
  one_->until([&] { return !one_->progress().empty(); });
  backend.reset();
  storage->begin_close();
  one_->until([&] { return storage->is_closed(); });
  EXPECT_EQ(owner("copy"), "");
  job.join();
  EXPECT_THAT(outcome.problem, HasSubstr("it was stopped"));
}

// By whichever gateway began it: the volume's next owner is another one, as a rule.
TEST_F(RbdJobsTest, AFlattenStopsWhenAnotherGatewayOpensTheImage) {
  constexpr int64_t kLarge = int64_t{64} << 30;
  ASSERT_EQ(one_->run(create("large", kLarge)).problem, "");
  wire::Job copy = clone("large", "", "copy");
  copy.mutable_clone()->set_size_bytes(kLarge);
  ASSERT_EQ(one_->run(copy).problem, "");
  Gateway two(*this, "two");
  two.until([&] { return two.look().empty(); });
  JobOutcome outcome;
  std::thread job([&] { outcome = one_->run(flatten("copy")); });
  one_->until([&] { return !one_->progress().empty(); });
  wire::DesiredVolume order = volume(1, "copy");
  order.set_size_bytes(kLarge);
  auto storage = two.storage_of(order);
  const auto backend = two.open(*storage, order);
  EXPECT_NE(backend, nullptr);
  job.join();
  EXPECT_THAT(outcome.problem, HasSubstr("it was stopped"));
}

TEST_F(RbdJobsTest, AFlattenDoesNotStartWhileItsVolumeCloses) {
  ASSERT_EQ(twice(clone("disk", "", "copy")), "");
  auto storage = one_->storage_of(volume(1, "copy"));
  auto backend = one_->open(*storage, volume(1, "copy"));
  ASSERT_NE(backend, nullptr);
  storage->begin_close();  // and the backend is on its way
  EXPECT_THAT(one_->run(flatten("copy")).problem, HasSubstr("it was stopped"));
  backend.reset();
  one_->until([&] { return storage->is_closed(); });
}

// No client has the image open, but the lock still names its last owner.
TEST_F(RbdJobsTest, AnImageOfAFencedOwnerIsManagedByOtherGateways) {
  Gateway two(*this, "two");
  auto storage = two.storage_of(volume(1));
  auto backend = two.open(*storage, volume(1));
  ASSERT_NE(backend, nullptr);
  ASSERT_EQ(Driver(*backend).write(0, pattern(0, 65536, 1)), 0);
  ASSERT_EQ(one_->run(fence_job(two.asked())).problem, "");
  one_->until([&] { return one_->run(snapshot("disk", "s")).problem.empty(); });
  EXPECT_EQ(Driver(*backend).write(0, Bytes(65536)), -ESHUTDOWN);
  expect("disk", 1);
}

// Otherwise an unknown snapshot would keep its image permanently.
TEST_F(RbdJobsTest, AFailedSnapshotDeletionIsNotReportedAsDone) {
  ASSERT_EQ(twice(snapshot("disk", "kept")), "");
  wire::Job forget;
  forget.mutable_delete_snapshot()->set_location("disk");
  forget.mutable_delete_snapshot()->set_snapshot_location("kept");
  ASSERT_TRUE(ceph_.client().blocklist(one_->asked().back()).ok());
  ASSERT_TRUE(ceph_.images().open("disk").ok());  // its disk knows, too
  EXPECT_NE(one_->run(forget).problem, "");
  EXPECT_EQ(rbd::admin("sh -c 'rbd snap ls " + ceph_.path() + " | grep -q kept'"), 0);
}

TEST_F(RbdJobsTest, AnImageIsDeletedWithTheSnapshotsOfUnfinishedCopies) {
  const std::string copy = "volume-00000000-0000-4000-8000-000000000001";
  ASSERT_EQ(twice(snapshot("disk", "for-" + copy)), "");
  EXPECT_EQ(twice(remove("disk", 0)), "");
}

// It is done again from a new one.
TEST_F(RbdJobsTest, ACopyThatFailsLeavesNoSnapshotBehind) {
  wire::DesiredPool pool = desired();
  pool.mutable_rbd()->set_data_pool("nopool");
  Gateway two(*this, "two", pool);
  two.until([&] { return !two.asked().empty(); });
  EXPECT_THAT(two.run(clone("disk", "", "copy")).problem, HasSubstr("no data pool nopool"));
  EXPECT_NE(rbd::admin("sh -c 'rbd snap ls " + ceph_.path() + " | grep -q for-'"), 0);
}

TEST_F(RbdJobsTest, AdoptionRenamesASuitableImageAndReportsWhyOthersAreUnsuitable) {
  const JobOutcome adopted = one_->run(adopt("disk", kImage));
  EXPECT_EQ(adopted.problem, "");
  EXPECT_EQ(adopted.size_bytes, static_cast<int64_t>(rbd::kImageSize));
  EXPECT_EQ(one_->run(adopt("disk", kImage)).size_bytes, adopted.size_bytes);
  EXPECT_EQ(twice(adopt("disk", kImage)), "");
  EXPECT_THAT(twice(adopt("none", "new")), HasSubstr("there is no such image"));
  EXPECT_THAT(twice(adopt("other", kImage)), HasSubstr("there is another image"));
  const auto made = [&](const std::string& name, const std::string& features) {
    return rbd::admin("rbd create --size 8M --image-feature " + features + " " + ceph_.path(name));
  };
  ASSERT_EQ(made("mapped", "layering,exclusive-lock,object-map"), 0);
  EXPECT_THAT(twice(adopt("mapped", "new")), HasSubstr("rbd feature disable"));
  ASSERT_EQ(made("unlocked", "layering"), 0);
  EXPECT_THAT(twice(adopt("unlocked", "new")), HasSubstr("rbd feature enable"));
  Gateway two(*this, "two");
  auto storage = two.storage_of(volume(1, "other"));
  auto backend = two.open(*storage, volume(1, "other"));
  ASSERT_NE(backend, nullptr);
  EXPECT_THAT(twice(adopt("other", "new")), HasSubstr("is in use by"));
}

TEST_F(RbdJobsTest, AJobOfALaterReleaseIsUnsupported) {
  const JobOutcome outcome = one_->run({});
  EXPECT_TRUE(outcome.unsupported);
  EXPECT_FALSE(outcome.problem.empty());
}

}  // namespace
}  // namespace sluice::control
