// The loss of a generative adversarial network as one number.
#pragma once

#include <torch/types.h>

#include "trainers/models/dcgan.h"

namespace hvdlite::trainers {

// The discriminator's binary cross entropy for `images` [N, C, 64, 64] and for
// what the generator makes of `noise` [N, latent], plus the generator's for
// being taken for real. Each network gets the gradient of its own part, at the
// same point: a step updates both at once, not the discriminator first as in
// Goodfellow et al., "Generative Adversarial Nets" (NeurIPS 2014), algorithm 1.
torch::Tensor DcganLoss(DcganGenerator& generator,
                        DcganDiscriminator& discriminator,
                        const torch::Tensor& noise,
                        const torch::Tensor& images);

}  // namespace hvdlite::trainers
