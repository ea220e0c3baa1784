// A program outside the project. It trains a small MLP to imitate a fixed
// function, and fails unless the loss falls and all ranks end with the same
// parameters.

#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>

namespace {

bool Fail(const std::string& message) {
  std::cerr << "rank " << hvdlite::rank() << ": FAILED: " << message << "\n";
  return false;
}

bool Train() {
  torch::manual_seed(1 + hvdlite::rank());  // models differ before broadcast
  torch::nn::Sequential model(torch::nn::Linear(8, 32), torch::nn::Tanh(),
                              torch::nn::Linear(32, 1));
  hvdlite::broadcast_parameters(*model, /*root_rank=*/0);
  hvdlite::DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(
          model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)),
      model->named_parameters());

  const at::Tensor inputs = torch::randn({64, 8});
  const at::Tensor targets = inputs.sum(/*dim=*/1, /*keepdim=*/true).tanh();
  float first_loss = 0, last_loss = 0;
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    at::Tensor loss = torch::mse_loss(model->forward(inputs), targets);
    loss.backward();
    optimizer.step();
    last_loss = hvdlite::allreduce(loss.detach()).item<float>();
    if (step == 0) first_loss = last_loss;
  }
  if (!(last_loss < first_loss / 4)) {
    return Fail("the loss fell only from " + std::to_string(first_loss) +
                " to " + std::to_string(last_loss));
  }
  const at::Tensor mine =
      torch::cat({model->parameters()[0].detach().flatten(),
                  model->parameters()[2].detach().flatten()});
  const at::Tensor roots = hvdlite::broadcast(mine, /*root_rank=*/0);
  if (!torch::equal(mine, roots)) {
    return Fail("parameters differ from rank 0's");
  }
  return true;
}

// A program can catch the shared library's exceptions by type.
bool CatchAcrossLibrary() {
  if (hvdlite::size() == 1) return true;
  try {
    hvdlite::allreduce(torch::ones({2 + hvdlite::rank()}),
                       hvdlite::AllreduceOptions().name("mismatched"));
  } catch (const hvdlite::WorldBroken& error) {
    return Fail(std::string("a mismatch broke the world: ") + error.what());
  } catch (const c10::Error& error) {
    if (std::string(error.what()).find("mismatched") == std::string::npos) {
      return Fail(std::string("the error names no tensor: ") + error.what());
    }
    return true;
  }
  return Fail("a mismatched shape was not an error");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--expect-size") != 0) {
    std::cerr << "usage: downstream_trainer --expect-size N\n";
    return 2;
  }
  hvdlite::init();
  bool passed = Train() && CatchAcrossLibrary();
  if (hvdlite::size() != std::atoi(argv[2])) {
    passed = Fail("the world has " + std::to_string(hvdlite::size()) +
                  " ranks instead of " + argv[2]);
  }
  hvdlite::shutdown();
  return passed ? 0 : 1;
}
