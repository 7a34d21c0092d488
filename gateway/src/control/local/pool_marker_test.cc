#include "control/local/pool_marker.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/record_text.h"
#include "control/local/directory_marker.h"
#include "control/local/local_pool.h"
#include "control/local/two_copies.h"
#include "control/test_objects.h"

namespace sluice::control {
namespace {

constexpr const char* kPoolUid = "0a0b0c0d-1111-4222-8333-444455556666";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class PoolMarkerTest : public testing::Test {
 protected:
  Identified identify() {
    const Result<FileDescriptor> directory = open_directory(directory_.path());
    Result<Identified> found = identify_pool(directory.value().get(), directory_.path(), expected_);
    EXPECT_TRUE(found.ok()) << found.error();
    return found ? std::move(found).value() : Identified();
  }
  void reported(const PoolMarker& marker) {
    expected_.identity->set_marker(marker.id);
    expected_.identity->set_adoptions(marker.adoptions);
  }
  std::string file(const std::string& name) const { return directory_.path() + '/' + name; }
  bool touched() const { return std::filesystem::exists(file(".sluice")); }

  TestDirectory directory_;
  ExpectedPool expected_{.uid = kPoolUid, .identity = wire::PoolIdentity()};
};

TEST_F(PoolMarkerTest, FirstUseOfAnEmptyDirectoryWritesTheMarker) {
  const Identified first = identify();
  ASSERT_TRUE(first.marker);
  EXPECT_EQ(first.doubt, "");
  EXPECT_EQ(first.marker->pool, kPoolUid);
  EXPECT_EQ(identify().marker, first.marker);
  reported(*first.marker);
  EXPECT_EQ(identify().doubt, "");
}

TEST_F(PoolMarkerTest, WithoutAnIdentityNoMarkerIsWrittenAndAnExistingOneMustNameThePool) {
  expected_.identity.reset();  // the control plane is of an earlier version
  EXPECT_FALSE(identify().marker);
  EXPECT_EQ(identify().doubt, "");
  EXPECT_FALSE(touched());
  expected_.identity.emplace();
  ASSERT_TRUE(identify().marker);
  expected_.identity.reset();
  EXPECT_EQ(identify().doubt, "");
  expected_.uid = "5f0c7a3e-9999-4222-8333-444455556666";
  EXPECT_NE(identify().doubt.find("is marked as the storage of pool"), std::string::npos);
}

TEST_F(PoolMarkerTest, ADirectoryWithoutTheKnownMarkerIsInDoubtAndNotWrittenTo) {
  expected_.identity->set_marker("1b4e28ba2fa14b0a1b4e28ba2fa14b0a");
  const Identified found = identify();
  EXPECT_TRUE(found.foreign);
  EXPECT_NE(found.doubt.find("Mount the pool's storage"), std::string::npos) << found.doubt;
  EXPECT_NE(found.doubt.find("sluicectl pool adopt"), std::string::npos) << found.doubt;
  EXPECT_FALSE(touched());
}

TEST_F(PoolMarkerTest, AnUpgradedPoolIsMarkedOnlyWhereAllKnownImagesExist) {
  expected_.identity->add_images("volume-a");
  expected_.identity->add_images("volume-b");
  EXPECT_NE(identify().doubt, "");
  EXPECT_FALSE(touched());
  write(file("volume-a"), "a");
  const Identified half = identify();
  EXPECT_NE(half.doubt.find("volume-b"), std::string::npos) << half.doubt;
  EXPECT_FALSE(half.foreign) << "images that exist are served on";
  EXPECT_FALSE(touched());
  write(file("volume-b"), "b");
  EXPECT_EQ(identify().doubt, "");
  EXPECT_TRUE(touched());
}

TEST_F(PoolMarkerTest, ADirectoryWithImagesOfAnotherSystemIsInDoubtAtFirstUse) {
  write(file("volume-a"), "a");
  const Identified found = identify();
  EXPECT_NE(found.doubt.find("volume-a"), std::string::npos) << found.doubt;
  EXPECT_FALSE(touched());
}

TEST_F(PoolMarkerTest, AMarkerOfAnotherPoolPutsADirectoryInDoubtOnlyIfItHasImages) {
  const PoolMarker other = *identify().marker;
  expected_.uid = "11111111-1111-4222-8333-444455556666";
  EXPECT_EQ(identify().doubt, "") << "nothing is in it";
  expected_.uid = kPoolUid;
  write(file("volume-a"), "a");
  const Identified found = identify();
  EXPECT_TRUE(found.foreign);
  EXPECT_NE(found.doubt.find("11111111"), std::string::npos) << found.doubt;
  EXPECT_NE(other.id, found.marker->id);
}

TEST_F(PoolMarkerTest, TheMarkerOfAnotherPoolIsReplacedOnlyAfterThatPoolIsDeleted) {
  ASSERT_TRUE(identify().marker);
  expected_ = {.uid = "new-pool", .identity = wire::PoolIdentity(), .others = {kPoolUid}};
  expected_.identity->set_confirmed_adoptions(1);
  const Identified found = identify();
  EXPECT_TRUE(found.foreign);
  EXPECT_NE(found.doubt.find("a directory belongs to one pool"), std::string::npos) << found.doubt;

  expected_.others.clear();  // the other pool was deleted
  const Identified later = identify();
  ASSERT_TRUE(later.marker);
  EXPECT_EQ(later.marker->pool, "new-pool");
}

TEST_F(PoolMarkerTest, ACopyInAnotherFileSystemIsInDoubt) {
  PoolMarker marker = *identify().marker;
  if (marker.filesystem.empty()) GTEST_SKIP() << "the kernel tells no UUID of this file system";
  reported(marker);
  marker.filesystem[0] = marker.filesystem[0] == '0' ? '1' : '0';
  const Result<FileDescriptor> directory = open_directory(directory_.path());
  ASSERT_TRUE(
      write_copies(directory.value().get(), ".sluice/pool", seal(format_marker(marker)), "").ok());
  EXPECT_NE(identify().doubt.find("it is a copy"), std::string::npos);
}

TEST_F(PoolMarkerTest, AConfirmedReplacementIsMarkedOnceAndTheFormerStorageIsInDoubt) {
  const PoolMarker former = *identify().marker;
  reported(former);
  const std::string former_file = read(file(".sluice/pool"));
  std::filesystem::remove_all(file(".sluice"));
  EXPECT_NE(identify().doubt, "");
  expected_.identity->set_confirmed_adoptions(1);
  const Identified adopted = identify();
  ASSERT_EQ(adopted.doubt, "");
  EXPECT_EQ(adopted.marker->adoptions, 1u);
  EXPECT_EQ(identify().marker, adopted.marker) << "before the control plane knows of it";
  reported(*adopted.marker);
  EXPECT_EQ(identify().marker, adopted.marker);
  write(file(".sluice/pool"), former_file);
  EXPECT_NE(identify().doubt, "");
}

TEST_F(PoolMarkerTest, AConfirmedReplacementIsMarkedEvenIfTheMarkerWasCopied) {
  const PoolMarker former = *identify().marker;
  reported(former);
  expected_.identity->set_confirmed_adoptions(1);
  const Identified adopted = identify();
  EXPECT_EQ(adopted.doubt, "");
  EXPECT_EQ(adopted.marker->adoptions, 1u);
  EXPECT_NE(adopted.marker->id, former.id);
}

TEST_F(PoolMarkerTest, ADamagedByteOfTheMarkerIsRepaired) {
  const PoolMarker marker = *identify().marker;
  reported(marker);
  const std::string whole = read(file(".sluice/pool"));
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == '\0' && i % 1024 != 1023) continue;  // a few bytes of the padding
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    write(file(".sluice/pool"), damaged);
    ASSERT_EQ(identify().marker, marker) << "byte " << i;
    ASSERT_EQ(read(file(".sluice/pool")), whole) << "byte " << i << " is not repaired";
  }
}

TEST_F(PoolMarkerTest, APoolInDoubtIsNotChangedByJobsAndIsReopenedWhenItsDirectoryReturns) {
  const auto nobody = [](auto&&...) { return HolderAnswer(); };
  const std::string mounted = file("mounted"), away = file("away");
  std::filesystem::create_directory(mounted);
  wire::DesiredPool desired;
  desired.set_uid(kPoolUid);
  desired.mutable_identity();
  const auto directory = [&] {
    return PoolDirectory::open(mounted, "me", nobody, {kPoolUid, desired.identity()}).value();
  };
  const auto open = [&] { return std::make_shared<LocalPool>(directory()); };
  desired.mutable_identity()->set_marker(directory()->identified().marker->id);
  write(mounted + "/volume-a", "precious");
  std::filesystem::rename(mounted, away);  // as if it were unmounted
  std::filesystem::create_directory(mounted);
  const auto empty = open();
  wire::Job job;
  job.mutable_delete_()->set_location("volume-a");
  JobOutcome outcome;
  const auto done = [&](JobOutcome came) { outcome = std::move(came); };
  empty->run_job(job, {}, done);
  EXPECT_NE(outcome.problem.find("has no marker of the pool"), std::string::npos)
      << outcome.problem;
  wire::PoolObserved seen;
  empty->observe(kPoolUid, [&](wire::PoolObserved found) { seen = std::move(found); });
  EXPECT_TRUE(seen.unidentified());
  EXPECT_NE(seen.problem(), "");
  EXPECT_EQ(seen.capacity_bytes(), 0);
  wire::DesiredVolume volume;
  volume.set_location("volume-a");
  EXPECT_FALSE(empty->storage_of(volume, nullptr).ok());
  EXPECT_FALSE(empty->is_current(desired));
  EXPECT_TRUE(std::filesystem::is_empty(mounted));
  std::filesystem::remove(mounted);
  std::filesystem::rename(away, mounted);
  EXPECT_EQ(directory()->identified().doubt, "");
  const auto back = open();
  EXPECT_TRUE(back->is_current(desired));
  std::filesystem::rename(mounted, away);
  std::filesystem::create_directory(mounted);
  EXPECT_FALSE(back->is_current(desired)) << "it is open from before";
  back->run_job(job, {}, done);
  EXPECT_NE(outcome.problem.find("another directory"), std::string::npos) << outcome.problem;
  EXPECT_TRUE(std::filesystem::exists(away + "/volume-a"));
}

}  // namespace
}  // namespace sluice::control
