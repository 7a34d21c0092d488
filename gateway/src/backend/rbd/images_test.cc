#include "rbd/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include "backend/test_driver.h"
#include "rbd/ceph_fixture.h"
#include "rbd/pool_facts.h"
#include "rbd/rbd_backend.h"

namespace sluice::rbd {
namespace {

using backend::Bytes;
using backend::Driver;
using backend::pattern;
using testing::HasSubstr;

class ImagesTest : public testing::Test {
 protected:
  void SetUp() override {
    install();
    ASSERT_NE(ceph.pool(), nullptr);
  }
  std::unique_ptr<Image> open(const std::string& image) {
    auto opened = ceph.images().open(image);
    EXPECT_TRUE(opened.ok()) << opened.error();
    return opened ? std::move(*opened) : nullptr;
  }
  Bytes contents(const std::string& image) {
    auto backend = backend::open(ceph.spec(image));
    EXPECT_TRUE(backend.ok()) << backend.error();
    return Driver(**backend).read(0, 65536);
  }
  void fill(const std::string& image, uint8_t salt) {
    auto backend = backend::open(ceph.spec(image));
    ASSERT_TRUE(backend.ok()) << backend.error();
    ASSERT_EQ(Driver(**backend).write(0, pattern(0, 65536, salt)), 0);
  }

  // Whether `copy`, if it can be opened at all, has its parent, and the parent knows of it.
  bool is_whole_if_there(const std::string& copy, const std::string& parent) {
    rbd_image_t image = nullptr;
    if (rbd_open_read_only(ceph.pool()->context(), copy.c_str(), &image, nullptr) < 0) return true;
    rbd_linked_image_spec_t of{};
    rbd_snap_spec_t at{};
    const bool has_parent = rbd_get_parent(image, &of, &at) == 0;
    std::array<char, 256> id{};
    EXPECT_EQ(rbd_get_id(image, id.data(), id.size()), 0);
    rbd_linked_image_spec_cleanup(&of);
    rbd_snap_spec_cleanup(&at);
    rbd_close(image);
    return has_parent && children(parent).contains(id.data());
  }
  std::set<std::string> children(const std::string& parent) {
    std::array<rbd_linked_image_spec_t, 64> found{};
    size_t count = found.size();
    EXPECT_EQ(rbd_list_children3(open(parent)->handle(), found.data(), &count), 0);
    std::set<std::string> ids;
    for (size_t i = 0; i < count; ++i) ids.insert(found[i].image_id);
    rbd_linked_image_spec_list_cleanup(found.data(), count);
    return ids;
  }

  CephNamespace ceph;
};

TEST_F(ImagesTest, CreatingAnImageTwiceYieldsOneImage) {
  const std::string name = image_of("0f7c3a52-8a3e-4c0f-9d51-1d2f6a1b7e90");
  EXPECT_TRUE(ceph.images().create(name, {.size = kImageSize, .data_pool = ""}).ok());
  EXPECT_TRUE(ceph.images().create(name, {.size = kImageSize, .data_pool = ""}).ok());
  EXPECT_THAT(ceph.images().create(name, {.size = 2 * kImageSize, .data_pool = ""}).error(),
              HasSubstr("exists with 8MiB instead of 16MiB"));
  EXPECT_THAT(ceph.images().create("other", {.size = 4096, .data_pool = "nopool"}).error(),
              HasSubstr("no data pool nopool"));
  const auto listed = ceph.images().list();
  ASSERT_TRUE(listed.ok()) << listed.error();
  ASSERT_EQ(listed.value().size(), 1u);  // `disk` isn't named by a volume
  EXPECT_EQ(listed.value()[0].volume, "0f7c3a52-8a3e-4c0f-9d51-1d2f6a1b7e90");
  EXPECT_EQ(contents(name), Bytes(65536));
}

TEST_F(ImagesTest, ADataPoolHoldsTheDataOfItsImage) {
  ASSERT_EQ(admin("ceph osd pool create bulk 8"), 0);
  ASSERT_EQ(admin("ceph osd pool application enable bulk rbd"), 0);
  ASSERT_TRUE(ceph.images().create("wide", {.size = kImageSize, .data_pool = "bulk"}).ok());
  fill("wide", 3);
  EXPECT_EQ(admin("sh -c 'rados -p bulk --all ls | grep -q rbd_data'"), 0);
  EXPECT_EQ(contents("wide"), pattern(0, 65536, 3));
}

TEST_F(ImagesTest, AnImageGrowsAndRefusesToShrink) {
  EXPECT_TRUE(ceph.images().grow("disk", 2 * kImageSize).ok());
  EXPECT_TRUE(ceph.images().grow("disk", 2 * kImageSize).ok());
  EXPECT_THAT(ceph.images().grow("disk", kImageSize).error(), HasSubstr("can't shrink"));
  EXPECT_EQ(ceph.images().adopt("disk").value(), 2 * kImageSize);
}

TEST_F(ImagesTest, AnImageThatCannotBeServedIsNotAdopted) {
  ASSERT_EQ(admin("rbd create --size 8M --image-feature layering,exclusive-lock,object-map " +
                  ceph.path("mapped")),
            0);
  EXPECT_THAT(ceph.images().adopt("mapped").error(), HasSubstr("rbd feature disable"));
  EXPECT_THAT(ceph.images().adopt("none").error(), HasSubstr("there is no such image"));
}

TEST_F(ImagesTest, ServedImagesAreNeitherRemovedNorRolledBack) {
  fill("disk", 1);
  ASSERT_TRUE(snapshot(*open("disk"), "before").ok());
  fill("disk", 2);
  auto backend = backend::open(ceph.spec());
  ASSERT_TRUE(backend.ok()) << backend.error();
  EXPECT_THAT(roll_back(*open("disk"), "before", {}).error(), HasSubstr("is in use"));
  EXPECT_THAT(ceph.images().remove("disk").error(), HasSubstr("disk"));
  EXPECT_EQ(Driver(**backend).read(0, 65536), pattern(0, 65536, 2));
  close_and_wait(**backend);
  backend->reset();
  EXPECT_EQ(contents("disk"), pattern(0, 65536, 2));
}

TEST_F(ImagesTest, ARollbackRestoresTheDataOfTheSnapshot) {
  fill("disk", 1);
  ASSERT_TRUE(snapshot(*open("disk"), "before").ok());
  fill("disk", 2);
  ASSERT_EQ(contents("disk"), pattern(0, 65536, 2));
  backend::open(ceph.spec()).value()->close([] {});
  // Closing takes its time; to open it again waits for that.
  ASSERT_TRUE(backend::open(ceph.spec()).ok());
  Result<void> back = roll_back(*open("disk"), "before", {});
  for (int i = 0; i < 1000 && !back; ++i) back = roll_back(*open("disk"), "before", {});
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(contents("disk"), pattern(0, 65536, 1));
  EXPECT_THAT(roll_back(*open("disk"), "never", {}).error(), HasSubstr("no snapshot never"));
}

TEST_F(ImagesTest, ACloneRetainsItsDataIfItsSnapshotIsRemovedAndCanBeFlattened) {
  fill("disk", 1);
  {
    auto disk = open("disk");
    ASSERT_TRUE(snapshot(*disk, "s").ok());
    ASSERT_TRUE(snapshot(*disk, "s").ok());
  }
  ASSERT_TRUE(ceph.images().clone("disk", "s", "copy", "").ok());
  ASSERT_TRUE(ceph.images().clone("disk", "s", "copy", "").ok());
  EXPECT_THAT(ceph.images().clone("disk", "t", "other", "").error(), HasSubstr("no snapshot t"));
  fill("disk", 2);
  EXPECT_EQ(contents("copy"), pattern(0, 65536, 1));
  EXPECT_TRUE(remove_snapshot(*open("disk"), "s").ok());  // the clone keeps it in the trash
  EXPECT_TRUE(remove_snapshot(*open("disk"), "s").ok());
  EXPECT_EQ(contents("copy"), pattern(0, 65536, 1));
  unsigned last = 0;
  const Progress progress = [&](unsigned permille) {
    last = permille;
    return true;
  };
  EXPECT_TRUE(flatten(*open("copy"), progress).ok());
  EXPECT_GT(last, 0u);
  EXPECT_TRUE(flatten(*open("copy"), progress).ok());
  fill("copy", 5);
  EXPECT_EQ(contents("disk"), pattern(0, 65536, 2));
}

// A creation that is interrupted leaves a name without an image that could hold data.
TEST_F(ImagesTest, AnIncompletelyCreatedImageIsCreatedAgain) {
  const NewImage wanted{.size = kImageSize, .data_pool = ""};
  ASSERT_TRUE(ceph.images().create("cut", wanted).ok());
  std::array<char, 256> id{};
  ASSERT_EQ(rbd_get_id(open("cut")->handle(), id.data(), id.size()), 0);
  const std::string header = std::string("rbd_header.") + id.data();
  ASSERT_EQ(rados_remove(ceph.pool()->context(), header.c_str()), 0);
  const Result<void> made = ceph.images().create("cut", wanted);
  ASSERT_TRUE(made.ok()) << made.error();
  EXPECT_EQ(contents("cut"), Bytes(65536));
}

// A copy that is interrupted leaves an image that opens but has no parent, or one that its parent's
// snapshot does not know. It must not be treated as the copy.
TEST_F(ImagesTest, ACloneReceivesItsNameOnlyWhenItIsComplete) {
  fill("disk", 1);
  ASSERT_TRUE(snapshot(*open("disk"), "s").ok());
  for (int i = 0; i < 20; ++i) {
    const std::string copy = "copy-" + std::to_string(i);
    std::atomic<bool> done = false;
    bool cloned = false;
    std::thread maker([&] {
      cloned = ceph.images().clone("disk", "s", copy, "").ok();
      done = true;
    });
    bool whole = true;
    while (!done) whole = is_whole_if_there(copy, "disk") && whole;
    maker.join();
    EXPECT_TRUE(cloned && is_whole_if_there(copy, "disk"));
    ASSERT_TRUE(whole) << copy;
  }
}

TEST_F(ImagesTest, LeftoversOfAnInterruptedCloneAreReplacedOrRemovedWithTheImage) {
  fill("disk", 1);
  ASSERT_TRUE(snapshot(*open("disk"), "s").ok());
  const NewImage zeros{.size = kImageSize, .data_pool = ""};
  ASSERT_TRUE(ceph.images().create(unfinished("copy"), zeros).ok());
  const Result<void> cloned = ceph.images().clone("disk", "s", "copy", "");
  ASSERT_TRUE(cloned.ok()) << cloned.error();
  EXPECT_EQ(contents("copy"), pattern(0, 65536, 1));
  EXPECT_FALSE(ceph.images().exists(unfinished("copy")).value());
  for (const bool trash : {false, true}) {
    ASSERT_TRUE(ceph.images().create(unfinished("other"), zeros).ok());
    EXPECT_TRUE(trash ? ceph.images().trash("other", 3600).ok()
                      : ceph.images().remove("other").ok());
    EXPECT_FALSE(ceph.images().exists(unfinished("other")).value());
  }
}

TEST_F(ImagesTest, RemovingOrTrashingAnImageTwiceSucceeds) {
  ASSERT_TRUE(ceph.images().create("a", {.size = 4096, .data_pool = ""}).ok());
  EXPECT_TRUE(ceph.images().remove("a").ok());
  EXPECT_TRUE(ceph.images().remove("a").ok());
  ASSERT_TRUE(ceph.images().create("b", {.size = 4096, .data_pool = ""}).ok());
  EXPECT_TRUE(ceph.images().trash("b", 3600).ok());
  EXPECT_TRUE(ceph.images().trash("b", 3600).ok());
  EXPECT_FALSE(ceph.images().adopt("b").ok());
  EXPECT_EQ(admin("sh -c 'rbd trash ls rbd/" + ceph.space() + " | grep -q b'"), 0);
}

TEST_F(ImagesTest, AProbeReportsWhichSettingIsWrong) {
  const backend::CephAccess good = gateway_access();
  const auto fine = probe(good, "rbd", ceph.space(), "");
  ASSERT_TRUE(fine.ok()) << fine.error();
  EXPECT_EQ(fine.value().cluster, ceph.client().cluster_id());
  EXPECT_THAT(probe(good, "nopool", "", "").error(), HasSubstr("there is no pool nopool"));
  EXPECT_THAT(probe(good, "rbd", "", "nodata").error(), HasSubstr("there is no pool nodata"));
  EXPECT_THAT(probe(good, "rbd", "nospace", "").error(), HasSubstr("no such namespace"));

  backend::CephAccess bad = good;
  bad.keyring_file.clear();
  bad.key = "AQBZqyBpAAAAABAAq0sQm2PnbWLpQMXXHYXl2A==";
  EXPECT_THAT(probe(bad, "rbd", "", "").error(), HasSubstr("refused client.gateway"));
  EXPECT_THAT(probe(bad, "rbd", "", "").error(), testing::Not(HasSubstr(bad.key)));
  bad = good;
  bad.keyring_file = "/there/is/no/such";
  EXPECT_THAT(probe(bad, "rbd", "", "").error(), HasSubstr("no key of client.gateway"));
  bad = good;
  bad.config_file.clear();
  bad.monitors = "127.0.0.1:1";
  EXPECT_THAT(probe(bad, "rbd", "", "").error(), HasSubstr("no monitor answered within 10 s"));
}

// The cluster's manager counts once a second. With a quota, what a pool can hold doesn't change
// with what others write.
TEST_F(ImagesTest, AProbeReportsCapacityAndUsageOfThePool) {
  ASSERT_EQ(admin("ceph osd pool create counted 8"), 0);
  ASSERT_EQ(admin("ceph osd pool application enable counted rbd"), 0);
  ASSERT_EQ(admin("ceph osd pool set-quota counted max_bytes 536870912"), 0);
  PoolFacts facts;
  const auto becomes = [&](auto holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      auto found = probe(gateway_access(), "counted", "", "");
      if (!found) return false;
      facts = *found;
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  };
  ASSERT_TRUE(becomes([&] { return facts.capacity_bytes == 536870912; }));
  EXPECT_LT(facts.used_bytes, facts.capacity_bytes);
  const uint64_t capacity = facts.capacity_bytes;
  const uint64_t before = facts.used_bytes;
  constexpr uint64_t kMore = uint64_t{32} << 20;
  ASSERT_EQ(admin("sh -c 'head -c 32M /dev/urandom | rados -p counted put filler -'"), 0);
  EXPECT_TRUE(becomes([&] { return facts.used_bytes >= before + kMore; }));
  EXPECT_EQ(facts.capacity_bytes, capacity);
  ASSERT_EQ(admin("rados -p counted rm filler"), 0);
  EXPECT_TRUE(becomes([&] { return facts.used_bytes < before + kMore; }));
}

}  // namespace
}  // namespace sluice::rbd
