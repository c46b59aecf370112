package main

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

type differentialCase struct {
	Fork         string                     `json:"fork"`
	Block        block                      `json:"block"`
	Pre          map[common.Address]account `json:"pre"`
	Transactions []transaction              `json:"transactions"`
}

type block struct {
	Number        uint64         `json:"number"`
	Timestamp     uint64         `json:"timestamp"`
	GasLimit      uint64         `json:"gas_limit"`
	Coinbase      common.Address `json:"coinbase"`
	Difficulty    word           `json:"difficulty"`
	PrevRandao    word           `json:"prev_randao"`
	BaseFee       word           `json:"base_fee"`
	ExcessBlobGas uint64         `json:"excess_blob_gas"`
	SlotNumber    uint64         `json:"slot_number"`
}

type transaction struct {
	Type                 int                  `json:"type"`
	Sender               common.Address       `json:"sender"`
	To                   *common.Address      `json:"to"`
	Data                 hexutil.Bytes        `json:"data"`
	GasLimit             uint64               `json:"gas_limit"`
	Nonce                uint64               `json:"nonce"`
	Value                word                 `json:"value"`
	GasPrice             word                 `json:"gas_price"`
	MaxFeePerGas         word                 `json:"max_fee_per_gas"`
	MaxPriorityFeePerGas word                 `json:"max_priority_fee_per_gas"`
	AccessList           [][2]json.RawMessage `json:"access_list"`
	MaxFeePerBlobGas     word                 `json:"max_fee_per_blob_gas"`
	BlobVersionedHashes  []common.Hash        `json:"blob_versioned_hashes"`
	AuthorizationList    [][6]json.RawMessage `json:"authorization_list"`
}

type log struct {
	Address common.Address
	Topics  []common.Hash
	Data    hexutil.Bytes
}

func (l log) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{hexutil.Encode(l.Address[:]), l.Topics, l.Data})
}

type outcome struct {
	Status  string        `json:"status"`
	Reason  string        `json:"reason"`
	GasUsed *uint64       `json:"gas_used,omitempty"`
	Output  hexutil.Bytes `json:"output,omitempty"`
	Logs    []log         `json:"logs,omitempty"`
}

type outcomes struct {
	Transactions []map[string]any `json:"transactions"`
	Root         common.Hash      `json:"root"`
	State        map[string]any   `json:"state,omitempty"`
}

// decimals are the hashes of former blocks: keccak256 of the number in decimal.
func ancestor(number uint64) common.Hash {
	return crypto.Keccak256Hash([]byte(strconv.FormatUint(number, 10)))
}

func accessListOf(entries [][2]json.RawMessage) (types.AccessList, error) {
	if entries == nil {
		return nil, nil
	}
	found := types.AccessList{}
	for _, entry := range entries {
		var tuple types.AccessTuple
		var keys []word
		if err := errors.Join(json.Unmarshal(entry[0], &tuple.Address), json.Unmarshal(entry[1], &keys)); err != nil {
			return nil, err
		}
		for _, key := range keys {
			tuple.StorageKeys = append(tuple.StorageKeys, key.Bytes32())
		}
		found = append(found, tuple)
	}
	return found, nil
}

func authorizationsOf(entries [][6]json.RawMessage) ([]types.SetCodeAuthorization, error) {
	var found []types.SetCodeAuthorization
	for _, entry := range entries {
		var item types.SetCodeAuthorization
		var chain, r, s word
		err := errors.Join(
			json.Unmarshal(entry[0], &chain), json.Unmarshal(entry[1], &item.Address),
			json.Unmarshal(entry[2], &item.Nonce), json.Unmarshal(entry[3], &item.V),
			json.Unmarshal(entry[4], &r), json.Unmarshal(entry[5], &s),
		)
		if err != nil {
			return nil, err
		}
		item.ChainID, item.R, item.S = chain.Int, r.Int, s.Int
		found = append(found, item)
	}
	return found, nil
}

func messageOf(fields *transaction, baseFee *uint256.Int) (*core.Message, error) {
	list, err := accessListOf(fields.AccessList)
	if err != nil {
		return nil, err
	}
	authorizations, err := authorizationsOf(fields.AuthorizationList)
	if err != nil {
		return nil, err
	}
	found := &core.Message{
		From: fields.Sender, To: fields.To, Nonce: fields.Nonce, Value: &fields.Value.Int,
		GasLimit: fields.GasLimit, Data: fields.Data, AccessList: list,
		SetCodeAuthorizations: authorizations,
	}
	if fields.Type < 2 {
		price := &fields.GasPrice.Int
		found.GasPrice, found.GasFeeCap, found.GasTipCap = price, price, price
	} else {
		found.GasFeeCap, found.GasTipCap = &fields.MaxFeePerGas.Int, &fields.MaxPriorityFeePerGas.Int
		price := new(uint256.Int).Add(found.GasTipCap, baseFee)
		if price.Gt(found.GasFeeCap) {
			price = found.GasFeeCap
		}
		found.GasPrice = price
	}
	if fields.Type == 3 {
		found.BlobGasFeeCap, found.BlobHashes = &fields.MaxFeePerBlobGas.Int, fields.BlobVersionedHashes
	}
	return found, nil
}

func contextOf(config *params.ChainConfig, block *block) vm.BlockContext {
	number := new(big.Int).SetUint64(block.Number)
	context := vm.BlockContext{
		CanTransfer: core.CanTransfer, Transfer: core.Transfer, GetHash: ancestor,
		Coinbase: block.Coinbase, BlockNumber: number, Time: block.Timestamp,
		Difficulty: block.Difficulty.ToBig(), GasLimit: block.GasLimit,
		BaseFee: block.BaseFee.ToBig(), CostPerStateByte: params.CostPerStateByte,
		SlotNum: block.SlotNumber,
	}
	if config.TerminalTotalDifficulty != nil {
		random := common.Hash(block.PrevRandao.Bytes32())
		context.Random = &random
	}
	if config.IsCancun(number, block.Timestamp) {
		header := &types.Header{Number: number, Time: block.Timestamp, ExcessBlobGas: &block.ExcessBlobGas}
		context.BlobBaseFee = eip4844.CalcBlobFee(config, header)
	}
	return context
}

// runTransaction executes one transaction, with the whole gas limit of the block at its disposal.
func runTransaction(evm *vm.EVM, statedb *state.StateDB, fields *transaction, number int, block *block) (map[string]any, error) {
	message, err := messageOf(fields, &block.BaseFee.Int)
	if err != nil {
		return nil, err
	}
	hash := common.BigToHash(big.NewInt(int64(number + 1)))
	statedb.SetTxContext(hash, number, uint32(number+1))
	rules := evm.GetRules()
	snapshot := statedb.Snapshot()
	result, err := core.ApplyMessage(evm, message, core.NewGasPool(block.GasLimit))
	if err != nil {
		statedb.RevertToSnapshot(snapshot)
		return map[string]any{"status": "rejected", "reason": err.Error()}, nil
	}
	statedb.Finalise(rules)
	status, reason := "success", ""
	if result.Err != nil {
		status, reason = "halt", result.Err.Error()
		if errors.Is(result.Err, vm.ErrExecutionReverted) {
			status = "revert"
		}
	}
	logs := []log{}
	for _, item := range statedb.GetLogs(hash, block.Number, common.Hash{}, block.Timestamp) {
		topics := item.Topics
		if topics == nil {
			topics = []common.Hash{}
		}
		logs = append(logs, log{item.Address, topics, item.Data})
	}
	output := hexutil.Bytes(result.ReturnData)
	if status == "halt" || output == nil {
		output = hexutil.Bytes{}
	}
	return map[string]any{
		"status": status, "reason": reason, "gas_used": result.UsedGas, "output": output, "logs": logs,
	}, nil
}

// runCase runs a case of the differential tests: the status, gas, output and logs of each
// transaction, and the state root afterwards.
func runCase(line []byte) (any, error) {
	var item differentialCase
	if err := json.Unmarshal(line, &item); err != nil {
		return nil, err
	}
	config, err := configuration(item.Fork)
	if err != nil {
		return map[string]string{"unsupported": item.Fork}, nil
	}
	statedb, err := stateOf(item.Pre)
	if err != nil {
		return nil, err
	}
	evm := vm.NewEVM(contextOf(config, &item.Block), statedb, config, vm.Config{})
	defer evm.Release()
	found := outcomes{Transactions: []map[string]any{}}
	for number := range item.Transactions {
		done, err := runTransaction(evm, statedb, &item.Transactions[number], number, &item.Block)
		if err != nil {
			return nil, err
		}
		found.Transactions = append(found.Transactions, done)
	}
	found.Root = statedb.IntermediateRoot(evm.GetRules())
	return found, nil
}
