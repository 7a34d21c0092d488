#include "control/local/jobs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "control/local/pool_observation.h"
#include "control/local/record_file.h"
#include "control/test_objects.h"

namespace sluice::control {
namespace {

class JobsTest : public testing::Test {
 protected:
  JobOutcome run(const wire::Job& job) {
    return run_job(*pool_, job, [this](const std::string&, const std::function<void(bool)>& task) {
      ++pauses_;
      task(served_);
      return Result<void>();
    });
  }
  JobOutcome create(const std::string& location, int64_t size) {
    wire::Job job;
    job.mutable_create()->set_location(location);
    job.mutable_create()->set_size_bytes(size);
    return run(job);
  }
  int64_t size_of(const std::string& location) const {
    struct stat status{};
    return ::stat((directory_.path() + '/' + location).c_str(), &status) == 0 ? status.st_size : -1;
  }
  size_t records() const {  // of kVolumeUid
    size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path() + "/.sluice")) {
      found += entry.path().filename().string().starts_with(kVolumeUid) ? 1 : 0;
    }
    return found;
  }
  TestDirectory directory_;
  std::shared_ptr<const PoolDirectory> pool_ =
      PoolDirectory::open(directory_.path(), "me", [](auto&&...) {
        return HolderAnswer();
      }).value();
  int pauses_ = 0;
  bool served_ = true;  // here
};

TEST_F(JobsTest, CreateResizeAndDeleteJobsAreIdempotent) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(create("volumes/a/disk", 1 << 20).problem, "");
    EXPECT_EQ(size_of("volumes/a/disk"), 1 << 20);
  }
  wire::Job resize;
  resize.mutable_resize()->set_location("volumes/a/disk");
  resize.mutable_resize()->set_size_bytes(2 << 20);
  EXPECT_EQ(run(resize).problem, "");
  EXPECT_EQ(size_of("volumes/a/disk"), 2 << 20);
  resize.mutable_resize()->set_size_bytes(1 << 20);
  EXPECT_EQ(run(resize).problem, "");
  EXPECT_EQ(size_of("volumes/a/disk"), 2 << 20) << "never below the present size";
  wire::Job remove;
  remove.mutable_delete_()->set_location("volumes/a/disk");
  EXPECT_EQ(run(remove).problem, "");
  EXPECT_EQ(size_of("volumes/a/disk"), -1);
  EXPECT_EQ(run(remove).problem, "");
  remove.mutable_delete_()->set_location("never/was");
  EXPECT_EQ(run(remove).problem, "");
}

TEST_F(JobsTest, TheRecordsOfAVolumeAreDeletedAfterItsDataAndNotRecreated) {
  const RecordFile file(pool_->records(), kVolumeUid, "record");
  Record record;
  record.volume = kVolumeUid;
  record.epoch = 1;
  record.order = 1;
  record.holder = pool_->self();
  wire::Job remove;
  remove.mutable_delete_()->set_location("disk");
  const auto record_it = [&] {
    ASSERT_EQ(create("disk", 4096).problem, "");
    for (record.order = 1; record.order < 3; ++record.order) {  // the second time in a slot
      ASSERT_TRUE(file.claim(record, Outlasts::kProcess).ok());
    }
  };
  record_it();
  ASSERT_EQ(records(), 5u) << "record, copy, claims, slots and guard";
  EXPECT_EQ(run(remove).problem, "");
  EXPECT_EQ(records(), 5u) << "whose it is was not said";
  remove.mutable_delete_()->set_volume_uid(kVolumeUid);
  EXPECT_EQ(run(remove).problem, "") << "again, after the data alone was deleted";
  EXPECT_EQ(records(), 0u);

  record_it();
  const FileDescriptor writer(
      ::openat(pool_->records(), (std::string(kVolumeUid) + ".guard").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(writer.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_NE(run(remove).problem, "") << "a writer is at it: the job comes again";
  EXPECT_EQ(size_of("disk"), -1);
  EXPECT_EQ(records(), 5u);
  ASSERT_EQ(::flock(writer.get(), LOCK_UN), 0);
  EXPECT_EQ(run(remove).problem, "");
  EXPECT_EQ(records(), 0u);
  EXPECT_FALSE(file.update(record).ok()) << "a delayed attempt restores nothing";
}

TEST_F(JobsTest, AVolumeIsNotDeletedWhileItsDataIsLocked) {
  const RecordFile file(pool_->records(), kVolumeUid, "record");
  Record record;
  record.volume = kVolumeUid;
  record.epoch = record.order = 1;
  record.holder = pool_->self();
  wire::Job remove;
  remove.mutable_delete_()->set_location("disk");
  remove.mutable_delete_()->set_volume_uid(kVolumeUid);
  for (const int kind : {LOCK_EX, LOCK_SH}) {
    ASSERT_EQ(create("disk", 4096).problem, "");
    ASSERT_TRUE(file.claim(record, Outlasts::kProcess).ok());
    const size_t before = records();
    {
      const FileDescriptor owner(::open((directory_.path() + "/disk").c_str(), O_RDWR | O_CLOEXEC));
      ASSERT_EQ(::flock(owner.get(), kind | LOCK_NB), 0);
      const JobOutcome refused = run(remove);
      EXPECT_TRUE(refused.problem.starts_with("not deleted: " + directory_.path() + "/disk"))
          << refused.problem;
      EXPECT_NE(refused.problem.find("process " + std::to_string(::getpid())), std::string::npos)
          << refused.problem;
      EXPECT_FALSE(refused.unsupported) << "it is to come again";
      EXPECT_EQ(size_of("disk"), 4096);
      EXPECT_EQ(records(), before);
      EXPECT_TRUE(file.update(record).ok())
          << "the gateway that has the data may yet write its record";
    }
    EXPECT_EQ(run(remove).problem, "");
    EXPECT_EQ(size_of("disk"), -1);
    EXPECT_EQ(records(), 0u);
  }
}

// Without opening the file, its lock can't be tested.
TEST_F(JobsTest, AFileThatCannotBeOpenedIsNotDeleted) {
  ASSERT_EQ(create("disk", 4096).problem, "");
  ASSERT_EQ(::symlink("disk", (directory_.path() + "/link").c_str()), 0);
  wire::Job remove;
  remove.mutable_delete_()->set_location("link");
  EXPECT_NE(run(remove).problem, "");
  EXPECT_TRUE(std::filesystem::is_symlink(directory_.path() + "/link"));
  ASSERT_EQ(::mkdir((directory_.path() + "/.sluice/kept").c_str(), 0700), 0);
  remove.mutable_delete_()->set_location(".sluice/kept");
  EXPECT_NE(run(remove).problem.find("is no place for an image"), std::string::npos);
}

// Each job that reads, changes or deletes the image of a volume, by name.
std::map<std::string, wire::Job> jobs_on_image(int64_t recorded) {
  std::map<std::string, wire::Job> jobs;
  wire::ResizeImage& resize = *jobs["resize"].mutable_resize();
  resize.set_location("volume-a");
  resize.set_size_bytes(4 << 20);
  resize.set_present_bytes(recorded);
  wire::CreateSnapshotImage& snapshot = *jobs["snapshot"].mutable_snapshot();
  snapshot.set_location("volume-a");
  snapshot.set_snapshot_location("snapshot-b");
  snapshot.set_volume_bytes(recorded);
  wire::CloneImage& clone = *jobs["clone"].mutable_clone();
  clone.set_source_location("volume-a");
  clone.set_location("volume-c");
  clone.set_size_bytes(4 << 20);
  clone.set_source_bytes(recorded);
  return jobs;
}

TEST_F(JobsTest, AnotherFileUnderAVolumesNameIsNeitherCopiedNorGrownNorDeleted) {
  ASSERT_EQ(create("volume-a", 1 << 20).problem, "");
  const std::string path = directory_.path() + "/volume-a";
  std::filesystem::rename(path, path + ".kept");
  std::ofstream(path) << "another file";
  std::map<std::string, wire::Job> jobs = jobs_on_image(0);
  wire::DeleteImage& remove = *jobs["delete"].mutable_delete_();
  remove.set_location("volume-a");
  remove.set_volume_uid(kVolumeUid);
  wire::RollBackImage& back = *jobs["roll back"].mutable_roll_back();
  back.set_location("volume-a");
  back.set_snapshot_location("volume-a.kept");
  for (const auto& [name, job] : jobs) {
    const JobOutcome done = run(job);
    EXPECT_NE(done.problem.find("another file than the volume's image"), std::string::npos)
        << name << ": " << done.problem;
    EXPECT_FALSE(done.unsupported) << name << ": the job comes again";
  }
  EXPECT_EQ(size_of("volume-a"), 12) << "the file was changed";
  EXPECT_EQ(size_of("volume-c"), -1);
  EXPECT_EQ(size_of("snapshot-b"), -1);
  std::filesystem::rename(path + ".kept", path);
  EXPECT_EQ(run(jobs["resize"]).problem, "");
  EXPECT_EQ(run(jobs["delete"]).problem, "");
  EXPECT_EQ(size_of("volume-a"), -1);
}

// Growing or copying it would replace the lost end by zeros.
TEST_F(JobsTest, ATruncatedImageIsNeitherCopiedNorGrown) {
  ASSERT_EQ(create("volume-a", 1 << 20).problem, "");
  ASSERT_EQ(::truncate((directory_.path() + "/volume-a").c_str(), 4096), 0);
  for (const auto& [name, job] : jobs_on_image(1 << 20)) {
    const std::string problem = run(job).problem;
    EXPECT_NE(problem.find("has lost its end"), std::string::npos) << name << ": " << problem;
  }
  EXPECT_EQ(size_of("volume-a"), 4096);
}

TEST_F(JobsTest, WithoutARecordedSizeAnImageIsNotRefusedAsTruncated) {
  ASSERT_EQ(create("volume-a", 1 << 20).problem, "");
  ASSERT_EQ(::truncate((directory_.path() + "/volume-a").c_str(), 4096), 0);
  for (const auto& [name, job] : jobs_on_image(0)) {
    const std::string problem = run(job).problem;
    EXPECT_EQ(problem.find("has lost its end"), std::string::npos) << name << ": " << problem;
  }
}

TEST_F(JobsTest, ADeleteJobWhoseUidIsAPathIsRefused) {
  wire::Job remove;
  remove.mutable_delete_()->set_location("disk");
  remove.mutable_delete_()->set_volume_uid("../disk");
  EXPECT_NE(run(remove).problem, "");
}

TEST_F(JobsTest, PathsThatLeaveThePoolAreRefused) {
  TestDirectory elsewhere;
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (directory_.path() + "/out").c_str()), 0);
  for (const std::string& bad :
       {std::string("../x"), std::string("a/../../x"), std::string("/etc/x"), std::string("out/x"),
        std::string(""), std::string(".sluice/x"), std::string("a/..")}) {
    const JobOutcome outcome = create(bad, 4096);
    EXPECT_FALSE(outcome.problem.empty()) << bad;
  }
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
  std::ofstream(elsewhere.path() + "/kept") << "x";
  wire::Job remove;
  remove.mutable_delete_()->set_location("out/kept");
  EXPECT_FALSE(run(remove).problem.empty());
  EXPECT_TRUE(std::filesystem::exists(elsewhere.path() + "/kept"));
}

TEST_F(JobsTest, ASnapshotIsCreatedDuringAPauseOrReportedAsUnsupported) {
  ASSERT_EQ(create("disk", 1 << 20).problem, "");
  wire::Job job;
  job.mutable_snapshot()->set_volume_uid(kVolumeUid);
  job.mutable_snapshot()->set_location("disk");
  job.mutable_snapshot()->set_snapshot_location("snapshots/one");
  const bool can = observe("p", *pool_).snapshots_supported();
  const JobOutcome outcome = run(job);
  EXPECT_EQ(pauses_, 1);
  EXPECT_EQ(outcome.unsupported, !can) << outcome.problem;
  EXPECT_EQ(outcome.problem.empty(), can) << outcome.problem;
  EXPECT_EQ(size_of("snapshots/one"), can ? 1 << 20 : -1);
  EXPECT_EQ(size_of("snapshots/one.new"), -1);
}

TEST_F(JobsTest, ASnapshotOfAnImageThatAnotherGatewayHasOpenIsRefused) {
  ASSERT_EQ(create("disk", 1 << 20).problem, "");
  wire::Job job;
  job.mutable_snapshot()->set_volume_uid(kVolumeUid);
  job.mutable_snapshot()->set_location("disk");
  job.mutable_snapshot()->set_snapshot_location("snapshots/one");
  const FileDescriptor owner(::open((directory_.path() + "/disk").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(owner.get(), LOCK_EX | LOCK_NB), 0);
  served_ = false;
  const JobOutcome refused = run(job);
  EXPECT_NE(refused.problem.find("is in use"), std::string::npos) << refused.problem;
  EXPECT_FALSE(refused.unsupported) << "it is tried again";
  EXPECT_EQ(size_of("snapshots/one"), -1);
  ASSERT_EQ(::flock(owner.get(), LOCK_UN), 0);
  EXPECT_EQ(run(job).problem.find("is in use"), std::string::npos);
}

TEST_F(JobsTest, APoolReportsItsCapacity) {
  const wire::PoolObserved observed = observe("p", *pool_);
  EXPECT_EQ(observed.uid(), "p");
  EXPECT_GT(observed.capacity_bytes(), 0);
  EXPECT_EQ(observed.problem(), "");
}

TEST_F(JobsTest, AJobOfALaterReleaseIsUnsupported) {
  const JobOutcome outcome = run({});
  EXPECT_TRUE(outcome.unsupported);
  EXPECT_FALSE(outcome.problem.empty());
}

}  // namespace
}  // namespace sluice::control
