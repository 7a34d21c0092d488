#include "control/local/image_identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "control/local/file_size_limit.h"
#include "control/local/file_storage.h"
#include "control/local/jobs.h"
#include "control/local/pool_observation.h"
#include "control/test_objects.h"

namespace sluice::control {
namespace {

constexpr const char* kImage = "volume-5f0c7a3e-1111-4222-8333-444455556666";

class ImageIdentityTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(create(), ""); }

  std::string run(const wire::Job& job) {
    return run_job(*pool_, job,
                   [](auto&&, const auto& task) {
                     task(false);
                     return Result<void>();
                   })
        .problem;
  }
  std::string create() {
    wire::Job job;
    job.mutable_create()->set_location(kImage);
    job.mutable_create()->set_size_bytes(1 << 20);
    return run(job);
  }
  // Why the volume can't be opened; empty: it can.
  std::string open(int64_t size = 1 << 20) {
    wire::DesiredVolume volume;
    volume.set_uid(kVolumeUid);
    volume.set_block_size(512);
    volume.set_size_bytes(size);
    return FileStorage(pool_, kVolumeUid, kImage).open(volume).problem;
  }
  void recreate() {
    std::filesystem::remove(path());
    std::ofstream(path()).close();
    std::filesystem::resize_file(path(), 1 << 20);
  }
  std::string path() const { return directory_.path() + '/' + kImage; }
  std::string identity() const { return directory_.path() + "/.sluice/" + kImage + ".image"; }
  std::shared_ptr<const PoolDirectory> pool(uint32_t adoptions) {
    ExpectedPool expected{.uid = "p", .identity = wire::PoolIdentity()};
    expected.identity->set_confirmed_adoptions(adoptions);
    expected.identity->add_images(kImage);
    auto opened = PoolDirectory::open(
        directory_.path(), "me", [](auto&&...) { return HolderAnswer(); }, expected);
    EXPECT_TRUE(opened.ok()) << opened.error();
    return std::move(opened).value();
  }

  TestDirectory directory_;
  std::shared_ptr<const PoolDirectory> pool_ =
      PoolDirectory::open(directory_.path(), "me", [](auto&&...) {
        return HolderAnswer();
      }).value();
};

TEST_F(ImageIdentityTest, TheCreatedFileIsOpenedAndAnotherFileOfItsNameIsRefused) {
  EXPECT_EQ(open(), "");
  recreate();
  const std::string problem = open();
  EXPECT_NE(problem.find("another file than the volume's image"), std::string::npos) << problem;
  EXPECT_NE(problem.find(identity()), std::string::npos) << "it says how to confirm: " << problem;
  std::filesystem::remove(identity());
  EXPECT_EQ(open(), "");
  EXPECT_TRUE(std::filesystem::exists(identity())) << "it is recorded from now on";
}

TEST_F(ImageIdentityTest, AnImageThatIsSmallerThanRecordedIsRefusedAndNotExtended) {
  const std::string problem = open(8 << 20);
  EXPECT_NE(problem.find("is 1MiB, recorded are 8MiB"), std::string::npos) << problem;
  EXPECT_EQ(std::filesystem::file_size(path()), 1u << 20);
}

TEST_F(ImageIdentityTest, ATruncatedSnapshotIsRefused) {
  const std::string path = directory_.path() + "/snapshot-a";
  std::ofstream(path) << std::string(8192, 'x');
  const FileDescriptor records = open_directory(directory_.path()).value();
  const ImageRecords where{.records = records.get(), .path = directory_.path(), .adoptions = 0};
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(record_image(where, "snapshot-a", file.get()).ok());
  EXPECT_TRUE(verify_image(where, "snapshot-a", file.get()).ok());
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  const Result<void> cut = verify_image(where, "snapshot-a", file.get());
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().find("4096 bytes, recorded are"), std::string::npos) << cut.error();
}

TEST_F(ImageIdentityTest, AMissingFileOrADirectoryIsRefused) {
  std::filesystem::remove(path());
  EXPECT_NE(open().find("No such file"), std::string::npos);
  std::filesystem::create_directory(path());
  EXPECT_NE(open().find("no regular file"), std::string::npos);
}

TEST_F(ImageIdentityTest, AConfirmedAdoptionRecordsAnImageAgainOnce) {
  recreate();
  EXPECT_NE(open(), "");
  pool_ = pool(1);
  EXPECT_EQ(open(), "");
  recreate();
  EXPECT_NE(open(), "");
}

TEST_F(ImageIdentityTest, ADamagedByteOfTheRecordIsRepairedUnlessBothCopiesAreDamaged) {
  const auto content = [this] {
    std::ifstream in(identity(), std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  const std::string whole = content();
  const auto put = [this](const std::string& bytes) {
    std::ofstream(identity(), std::ios::binary) << bytes;
  };
  std::string both = whole;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == '\0') continue;
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    both[i] = damaged[i];
    put(damaged);
    ASSERT_EQ(open(), "") << "byte " << i;
    ASSERT_EQ(content(), whole) << "byte " << i << " is not repaired";
  }
  put(both);
  EXPECT_NE(open().find("damaged in both copies"), std::string::npos);
}

TEST_F(ImageIdentityTest, ADeletedImageLeavesNoRecord) {
  wire::Job job;
  job.mutable_delete_()->set_location(kImage);
  job.mutable_delete_()->set_volume_uid(kVolumeUid);
  EXPECT_EQ(run(job), "");
  EXPECT_FALSE(std::filesystem::exists(identity()));
}

TEST_F(ImageIdentityTest, ImagesAreListedWithoutSnapshotsAndUnfinishedFiles) {
  std::ofstream(directory_.path() + "/volume-orphan").close();
  std::ofstream(directory_.path() + "/volume-orphan.new").close();
  std::ofstream(directory_.path() + "/snapshot-s").close();
  wire::Job job;
  job.mutable_list_images();
  const JobOutcome listed = run_job(*pool_, job, nullptr);
  EXPECT_EQ(listed.problem, "");
  EXPECT_EQ(listed.images, (std::vector<std::string>{kImage, "volume-orphan"}));
}

TEST_F(ImageIdentityTest, TheMaximumImageSizeOfTheFileSystemIsProbedAndReported) {
  const int64_t most = probe_max_file_bytes(pool_->records());
  ASSERT_GT(most, int64_t{1} << 30);
  const wire::PoolObserved seen = observe("p", *pool_);
  EXPECT_EQ(seen.max_image_bytes(), most);
  EXPECT_TRUE(seen.lists_images());
  std::filesystem::resize_file(path(), static_cast<uintmax_t>(most));
  if (most >= int64_t{64} << 40) return;
  std::error_code refused;
  std::filesystem::resize_file(path(), static_cast<uintmax_t>(most) + 4096, refused);
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace sluice::control
