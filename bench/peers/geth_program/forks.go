package main

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/params"
)

// Forks in their order; a configuration activates all up to its own from the start.
var order = []string{
	"frontier", "homestead", "tangerinewhistle", "spuriousdragon", "byzantium", "constantinople",
	"petersburg", "istanbul", "berlin", "london", "paris", "shanghai", "cancun", "prague", "osaka",
	"bpo1", "bpo2", "amsterdam",
}

var configurations = map[string]*params.ChainConfig{}

// configuration returns the chain configuration of a fork, whose chain id is 1.
func configuration(name string) (*params.ChainConfig, error) {
	name = strings.ToLower(name)
	if found := configurations[name]; found != nil {
		return found, nil
	}
	era := -1
	for at, known := range order {
		if known == name {
			era = at
		}
	}
	if era < 0 {
		return nil, fmt.Errorf("unknown fork %q", name)
	}
	rank := func(name string) bool {
		for at, known := range order {
			if known == name {
				return at <= era
			}
		}
		panic(name)
	}
	block := func(name string) *big.Int {
		if rank(name) {
			return new(big.Int)
		}
		return nil
	}
	time := func(name string) *uint64 {
		if rank(name) {
			return new(uint64)
		}
		return nil
	}
	found := &params.ChainConfig{
		ChainID:             big.NewInt(1),
		HomesteadBlock:      block("homestead"),
		EIP150Block:         block("tangerinewhistle"),
		EIP155Block:         block("spuriousdragon"),
		EIP158Block:         block("spuriousdragon"),
		ByzantiumBlock:      block("byzantium"),
		ConstantinopleBlock: block("constantinople"),
		PetersburgBlock:     block("petersburg"),
		IstanbulBlock:       block("istanbul"),
		BerlinBlock:         block("berlin"),
		LondonBlock:         block("london"),
		ShanghaiTime:        time("shanghai"),
		CancunTime:          time("cancun"),
		PragueTime:          time("prague"),
		OsakaTime:           time("osaka"),
		BPO1Time:            time("bpo1"),
		BPO2Time:            time("bpo2"),
		AmsterdamTime:       time("amsterdam"),
		BlobScheduleConfig: &params.BlobScheduleConfig{
			Cancun: params.DefaultCancunBlobConfig,
			Prague: params.DefaultPragueBlobConfig,
			BPO1:   params.DefaultBPO1BlobConfig,
			BPO2:   params.DefaultBPO2BlobConfig,
		},
	}
	if found.ConstantinopleBlock != nil && found.PetersburgBlock == nil {
		found.PetersburgBlock = new(big.Int).SetUint64(1 << 63) // nil would mean with Constantinople
	}
	if rank("paris") {
		found.MergeNetsplitBlock = new(big.Int)
		found.TerminalTotalDifficulty = new(big.Int)
	}
	configurations[name] = found
	return found, nil
}
